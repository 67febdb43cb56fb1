"""Every error a user can meet: what happened, what was expected, what to do.

Two sides. The public side (`PlanError`, `GuardError` and their kin) depends on settings, keys and
the calendar, so it may quote them. `DataError` depends on the stream: it reaches whoever feeds the
ledger, carries no value or id, and never changes, delays or stops a release.
"""

from __future__ import annotations


class RetrodpError(Exception):
    """Base of all errors of this package.

    Attributes:
        code: Short machine-readable name, stable between versions.
        exit_code: What the command line returns.
        what: What happened.
        expected: What would have been right, or an empty string.
        do: What the reader can do next, or an empty string.
    """

    code = "error"
    exit_code = 2

    def __init__(self, what: str, *, expected: str = "", do: str = "") -> None:
        self.what = what
        self.expected = expected
        self.do = do
        sentences = [what]
        if expected:
            sentences.append(f"Expected: {expected}.")
        if do:
            sentences.append(do)
        super().__init__(" ".join(sentences))


class UsageError(RetrodpError):
    """A call or command that makes no sense as written."""

    code = "usage"


class ExtraMissingError(UsageError):
    """Something that needs an optional dependency which is not installed."""

    code = "extra_missing"


class PlanError(RetrodpError):
    """A plan, or a public parameter, that cannot be right."""

    code = "plan"


class NotInThisVersionError(PlanError):
    """Part of the plan grammar that this version does not have yet."""

    code = "not_in_this_version"


class BudgetError(PlanError):
    """The privacy budget does not fit what the plan asks for."""

    code = "budget"


class SourceError(RetrodpError):
    """A source that is refused whole: a missing column, an unreadable file."""

    code = "source"


class DataError(RetrodpError):
    """A row that is refused. Carries file, line, field and reason; never a value or an id."""

    code = "data"
    exit_code = 3


class VerificationError(RetrodpError):
    """A verification or an audit that failed."""

    code = "verification"
    exit_code = 1


class GuardError(RetrodpError):
    """A guard of the promises refused to go on; nothing was changed."""

    code = "guard"
    exit_code = 4


class HorizonExceededError(GuardError):
    """A round after the horizon was asked for."""

    code = "horizon"


class FutureDateError(GuardError):
    """A round that has not begun was asked for."""

    code = "future_date"


class RoundClosedError(GuardError):
    """A round that was already released was asked for again."""

    code = "round_closed"


class KeyDestroyedError(GuardError):
    """The key of a past round is gone; its noise cannot be derived by anyone."""

    code = "key_destroyed"


class KeyMissingError(GuardError):
    """The key file of an existing store is not there."""

    code = "key_missing"


class KeyMismatchError(GuardError):
    """The key belongs to another store, plan or time."""

    code = "key_mismatch"


class KeyPermissionsError(GuardError):
    """The key file can be read by others."""

    code = "key_permissions"


class StoreBehindError(GuardError):
    """The store is older than its key or its published releases."""

    code = "store_behind"


class PlanChangedError(GuardError):
    """The plan differs from the one the store was created with."""

    code = "plan_changed"


class StoreLockedError(GuardError):
    """Another process is writing to the store."""

    code = "locked"


class StoreCorruptError(GuardError):
    """The files of a store contradict one another or cannot be read."""

    code = "store_corrupt"


class DiskFullError(GuardError):
    """The disk is full; nothing was half-written."""

    code = "disk_full"


class TestKeyError(GuardError):
    """A fixed test key was used outside a test store, or the reverse."""

    __test__ = False  # the name is not a test case's
    code = "test_key"


class CapacityError(GuardError):
    """A number that has to fit 64 bits no longer does; nothing was changed."""

    code = "capacity"


class StoreRetiredError(GuardError):
    """The store was ended; it takes nothing in and closes no round."""

    code = "retired"


class BackupError(GuardError):
    """A back-up was opened as if it were the running store."""

    code = "backup"
