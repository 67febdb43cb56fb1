from __future__ import annotations

import json
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrodp.errors import (
    HorizonExceededError,
    KeyDestroyedError,
    PlanError,
    StoreCorruptError,
    UsageError,
)
from retrodp.noise.key import CoverNode, KeyTree, NoiseKeys, encode, system_bytes

ROOT = bytes(range(32))
STORE = b"test store"
HORIZONS = [*range(1, 34), 63, 64, 65, 100]


def tree(horizon: int) -> KeyTree:
    return KeyTree.from_root(ROOT, STORE, horizon)


def leaves_below(node: CoverNode, height: int) -> dict[int, bytes]:
    """Every leaf that a holder of the node can derive, by brute force: round -> key."""
    row = [node]
    for _ in range(height - node.depth):
        row = [part.child(side) for part in row for side in (0, 1)]
    return {leaf.index + 1: leaf.key for leaf in row}


@pytest.mark.parametrize("horizon", HORIZONS)
def test_a_new_tree_derives_a_different_key_for_every_round(horizon: int) -> None:
    keys = {tree(horizon).round_key(round_) for round_ in range(1, horizon + 1)}
    assert len(keys) == horizon
    assert {len(key) for key in keys} == {32}


@pytest.mark.parametrize("horizon", HORIZONS)
def test_an_advanced_tree_derives_exactly_the_remaining_rounds(horizon: int) -> None:
    """Brute force over everything below the cover, for every mark."""
    whole = tree(horizon)
    keys = {round_: whole.round_key(round_) for round_ in range(1, horizon + 1)}
    height = (horizon - 1).bit_length()
    derivable = {
        mark: {
            round_: key
            for node in whole.advanced(mark).cover
            for round_, key in leaves_below(node, height).items()
        }
        for mark in range(1, horizon + 1)
    }
    assert derivable == {
        mark: {round_: key for round_, key in keys.items() if round_ >= mark}
        for mark in range(1, horizon + 1)
    }


@pytest.mark.parametrize("horizon", HORIZONS)
def test_no_cover_node_is_an_ancestor_of_a_past_leaf(horizon: int) -> None:
    height = (horizon - 1).bit_length()
    trespassers = [
        (mark, node)
        for mark in range(1, horizon + 1)
        for node in tree(horizon).advanced(mark).cover
        for past in range(1, mark)
        if (past - 1) >> (height - node.depth) == node.index
    ]
    assert trespassers == []


def test_a_tree_that_is_not_advanced_opens_the_past() -> None:
    """Twin of the two tests above: the fixed key that they exclude."""
    held = tree(20)
    height = 5
    opened = {r for node in held.cover for r in leaves_below(node, height)}
    assert set(range(1, 20)) <= opened


@pytest.mark.parametrize("horizon", [1, 2, 7, 64, 100])
def test_advancing_in_steps_or_at_once_is_the_same(horizon: int) -> None:
    stepped = tree(horizon)
    for mark in range(1, horizon + 1):
        stepped = stepped.advanced(mark)
    assert stepped == tree(horizon).advanced(horizon)


def test_the_cover_stays_small() -> None:
    horizon = 2**20
    sizes = [len(tree(horizon).advanced(mark).cover) for mark in (1, 2, 3, 2**19, 2**20 - 1)]
    assert max(sizes) <= 2 * 20


@pytest.mark.parametrize("round_", [0, -1, 4, 11, 1 << 70])
def test_a_round_outside_the_mark_and_horizon_has_no_key(round_: int) -> None:
    with pytest.raises(KeyDestroyedError, match="cannot be derived"):
        tree(10).advanced(5).round_key(round_)


def test_every_kind_of_key_of_a_past_round_is_gone() -> None:
    held = tree(10).advanced(5)
    with pytest.raises(KeyDestroyedError):
        held.node_key(release="a", factor="haar", node=(1, 2), last=4)
    with pytest.raises(KeyDestroyedError):
        held.fresh_key(release="a", purpose="ranks", round=4)


def test_a_tree_cannot_go_back() -> None:
    with pytest.raises(KeyDestroyedError, match="cannot go back"):
        tree(10).advanced(5).advanced(4)


def test_a_tree_cannot_go_past_the_horizon() -> None:
    with pytest.raises(HorizonExceededError):
        tree(10).advanced(11)


def test_a_destroyed_tree_derives_nothing() -> None:
    gone = tree(10).advanced(10).destroyed()
    assert (gone.cover, gone.lasting) == ((), b"")
    with pytest.raises(KeyDestroyedError):
        gone.round_key(10)
    with pytest.raises(KeyDestroyedError):
        gone.lasting_key(release="a", purpose="hash")
    with pytest.raises(KeyDestroyedError):
        gone.advanced(10)


def test_the_lasting_key_is_the_same_in_every_round() -> None:
    keys = {
        tree(10).advanced(mark).lasting_key(release="a", purpose="hash") for mark in range(1, 11)
    }
    assert len(keys) == 1


def test_the_next_epoch_s_tree_has_what_intake_needs_of_this_one_and_nothing_else() -> None:
    """Neither key file derives a release's key of the other epoch: not by tree, nor lasting."""
    trees = [tree(8)]
    for _ in range(2):
        trees.append(trees[-1].following(store_id="s", horizon=8, root=ROOT))
    assert len({held.lasting_key(release="", purpose="hash") for held in trees}) == 1
    assert len({held.lasting_key(release="a", purpose="hash") for held in trees}) == 3
    owns = [held.lasting[-32:] for held in trees]
    assert [[own in held.lasting for own in owns] for held in trees] == [
        [True, False, False],
        [False, True, False],
        [False, False, True],
    ]


def test_a_store_id_another_root_or_another_horizon_gives_other_keys() -> None:
    trees = [
        tree(8),
        KeyTree.from_root(ROOT, b"another store", 8),
        KeyTree.from_root(bytes(32), STORE, 8),
        tree(7),
    ]
    assert len({held.round_key(3) for held in trees}) == 4
    assert len({held.lasting for held in trees}) == 4


def test_keys_of_different_uses_differ() -> None:
    held = tree(8)
    keys = [
        held.round_key(3),
        held.node_key(release="a", factor="b", node=(), last=3),
        held.node_key(release="a", factor="b", node=(1,), last=3),
        held.node_key(release="a", factor="b", node=("1",), last=3),
        held.node_key(release="a", factor="b", node=(1,), last=4),
        held.node_key(release="ab", factor="", node=(1,), last=3),
        held.node_key(release="", factor="ab", node=(1,), last=3),
        held.fresh_key(release="a", purpose="b", round=3),
        held.fresh_key(release="a", purpose="b", round=4),
        held.lasting_key(release="a", purpose="b"),
        held.lasting,
    ]
    assert len(set(keys)) == len(keys)


def test_the_tree_offers_what_mechanisms_ask() -> None:
    keys: NoiseKeys = tree(8)
    assert len(keys.node_key(release="a", factor="b", node=("L", 1), last=8)) == 32


def test_new_trees_share_nothing() -> None:
    (one, first_id), (two, second_id) = KeyTree.generate(5), KeyTree.generate(5)
    assert one.round_key(1) != two.round_key(1)
    assert first_id != second_id
    assert (len(bytes.fromhex(first_id)), one.round, one.horizon) == (16, 1, 5)


def test_the_operating_system_gives_the_bytes_asked_for() -> None:
    assert len(system_bytes(12)) == 12
    assert system_bytes(32) != system_bytes(32)


def test_no_key_is_ever_shown() -> None:
    held = tree(21).advanced(6)
    secrets = [node.key for node in held.cover] + [held.lasting, held.round_key(6)]
    shown = repr(held) + repr(held.cover) + str(held)
    assert not any(key.hex() in shown or repr(key)[2:-1] in shown for key in secrets)
    assert "KeyTree(horizon=21, round=6, epoch=1)" in shown


@pytest.mark.parametrize(("horizon", "mark"), [(1, 1), (10, 1), (10, 6), (1000, 999)])
def test_a_tree_survives_json(horizon: int, mark: int) -> None:
    held = tree(horizon).advanced(mark)
    assert KeyTree.from_json(json.loads(json.dumps(held.to_json()))) == held


def test_a_destroyed_tree_survives_json() -> None:
    gone = tree(10).destroyed()
    assert KeyTree.from_json(json.loads(json.dumps(gone.to_json()))) == gone


def test_a_tree_survives_pickling_for_other_processes() -> None:
    held = tree(10).advanced(4)
    assert pickle.loads(pickle.dumps(held)) == held


@pytest.mark.parametrize(
    "edit",
    [
        {"round": 5},
        {"round": 7},
        {"round": "6"},
        {"round": True},
        {"round": 0},
        {"round": 12},
        {"horizon": 11},
        {"horizon": 0},
        {"cover": []},
        {"cover": None},
        {"cover": [[1, 2]]},
        {"lasting": ""},
        {"lasting": "ab"},
        {"lasting": 7},
        {"lasting": "zz"},
    ],
)
def test_an_edited_key_is_refused(edit: dict[str, object]) -> None:
    pieces = tree(10).advanced(6).to_json() | edit
    with pytest.raises(StoreCorruptError) as refusal:
        KeyTree.from_json(pieces)
    assert tree(10).lasting.hex()[:8] not in str(refusal.value)


def test_a_cover_that_still_opens_the_past_is_refused() -> None:
    pieces = tree(10).advanced(6).to_json() | {"cover": tree(10).to_json()["cover"]}
    with pytest.raises(StoreCorruptError, match="exactly rounds 6 to 10"):
        KeyTree.from_json(pieces)


def test_a_missing_piece_is_refused() -> None:
    pieces = tree(10).to_json()
    del pieces["lasting"]
    with pytest.raises(StoreCorruptError):
        KeyTree.from_json(pieces)


def test_a_root_of_another_length_is_refused() -> None:
    with pytest.raises(PlanError, match="32 bytes"):
        KeyTree.from_root(b"short", STORE, 5)


@pytest.mark.parametrize("horizon", [0, -1, 2.0, True])
def test_a_horizon_that_is_no_positive_whole_number_is_refused(horizon: int) -> None:
    with pytest.raises(PlanError):
        KeyTree.from_root(ROOT, STORE, horizon)


Part = int | str | bytes | tuple["Part", ...]
PARTS: st.SearchStrategy[Part] = st.recursive(
    st.integers() | st.text(max_size=3) | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=6,
)


def typed(part: Part) -> object:
    """A value that is equal only for equal types too (1 == True elsewhere)."""
    if isinstance(part, tuple):
        return ("tuple", *map(typed, part))
    return type(part).__name__, part


@settings(deadline=None)
@given(st.lists(PARTS, max_size=4), st.lists(PARTS, max_size=4))
def test_an_encoding_belongs_to_one_sequence(one: list[Part], two: list[Part]) -> None:
    assert (encode(*one) == encode(*two)) == ([*map(typed, one)] == [*map(typed, two)])


AMBIGUOUS: list[tuple[tuple[Part, ...], tuple[Part, ...]]] = [
    ((1,), ("1",)),
    (("1",), (b"1",)),
    (("a", "bc"), ("ab", "c")),
    (("a",), ("a", "")),
    ((("a",), "b"), (("a", "b"),)),
    (((),), ()),
    ((255,), (-1,)),
    ((256,), (1, 0)),
    ((0,), ()),
    (("a\x00b",), ("a", "b")),
]


@pytest.mark.parametrize(("one", "two"), AMBIGUOUS)
def test_what_a_careless_encoding_confuses_stays_apart(
    one: tuple[Part, ...], two: tuple[Part, ...]
) -> None:
    assert encode(*one) != encode(*two)


def test_a_careless_encoding_does_confuse() -> None:
    """Twin: joining the texts of the parts."""
    assert "".join(map(str, ("a", "bc"))) == "".join(map(str, ("ab", "c")))


@pytest.mark.parametrize("part", [True, 1.0, None, [1]])
def test_a_part_of_another_type_has_no_encoding(part: int) -> None:
    with pytest.raises(UsageError, match="cannot hold"):
        encode(part)


def test_the_keys_of_a_fixed_root_never_change() -> None:
    """Golden. A change would silently change every published number: new noise format only."""
    held = tree(365)
    assert {
        "round": held.round_key(300).hex(),
        "node": held.node_key(release="a", factor="haar", node=("L", 3), last=300).hex(),
        "fresh": held.fresh_key(release="a", purpose="ranks", round=300).hex(),
        "lasting": held.lasting_key(release="a", purpose="hash").hex(),
    } == {
        "round": "2919d3e8d3f0fa28abaff91615845869d14a85f7eb08c83c3b9dcc4f43935650",
        "node": "6622713ceee2b3df1e73f70f01fa389291a3abbdb3962e97a4bb94b26c738867",
        "fresh": "710188f6d3c20db8be163d17a3eedf0691fea606be037bdaeb8ec3f1bc49b959",
        "lasting": "f6eec0c409cee4ca3869a01580773556cb3d79b7fa7d0543f9323f645dfcee00",
    }
