"""Who looks: published releases only."""
