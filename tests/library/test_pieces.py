"""A batch in pieces: every element once, in its order, and few enough at a time."""

import pytest
import torch

from ppo_core import pieces


@pytest.mark.parametrize(("piece", "sizes"), [(1, [1] * 6), (4, [4, 2]), (6, [6]), (100, [6])])
def test_pieces_are_flat_parts_in_order(piece, sizes, monkeypatch):
    monkeypatch.setattr(pieces, "PIECE", piece)
    x, mask = torch.arange(6.0).reshape(2, 3), torch.tensor([[True, False, True], [False, False, True]])
    parts = list(pieces.pieces(x, mask))
    assert [part.shape for part, _ in parts] == [(size,) for size in sizes]
    assert torch.cat([part for part, _ in parts]).tolist() == [0, 1, 2, 3, 4, 5]
    assert torch.cat([part for _, part in parts]).tolist() == mask.flatten().tolist()


def test_what_is_written_into_a_piece_is_written_into_the_whole(monkeypatch):
    monkeypatch.setattr(pieces, "PIECE", 2)
    whole = torch.zeros(3, 1)
    for number, (part,) in enumerate(pieces.pieces(whole)):
        part.fill_(number)
    assert whole.tolist() == [[0], [0], [1]]


def test_nothing_is_one_empty_piece(monkeypatch):
    monkeypatch.setattr(pieces, "PIECE", 1)
    assert [part.shape for (part,) in pieces.pieces(torch.zeros(2, 0))] == [(0,)]


def test_one_number_is_one_piece(monkeypatch):
    monkeypatch.setattr(pieces, "PIECE", 1)
    assert [part.tolist() for (part,) in pieces.pieces(torch.tensor(3.0))] == [[3]]


def test_where_data_may_not_be_looked_at_the_whole_is_one_piece(monkeypatch):
    monkeypatch.setattr(pieces, "PIECE", 1)
    assert [part.shape for (part,) in pieces.pieces(torch.zeros(2, 3, device="meta"))] == [(6,)]


def test_a_piece_is_2_mib():
    # In float32; these are 4 MiB, and one number.
    parts = [len(part) for (part,) in pieces.pieces(torch.zeros(1).expand(2**20))]
    assert parts == [2**19, 2**19]
