"""The loop: plan to mechanisms, one round closed, forgetting, verification."""
