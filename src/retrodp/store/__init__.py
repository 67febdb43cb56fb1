"""What is kept: the ledger of survivors (exact), the published releases (noisy), key, lock.

Promise: the ledger is the only keeper of records; what it forgot is in no file of the store after
`Ledger.erase`. This package imports none of its modules here, so that a reader of the published
releases never loads the half that holds exact values.
"""
