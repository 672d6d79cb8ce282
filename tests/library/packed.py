"""One batch in two forms: padded, a sequence in each row, and packed, several in a row."""

import torch

LENGTHS = (3, 1, 4, 2, 2)
# Which sequences stand in which packed row, and the numbers that they bear there; the same number twice in a
# row names two sequences, as long as they are not neighbours.
ROWS = (((0, 1, 3), (7, 2, 7)), ((2, 4), (-1, 0)))
TOKENS = 8


def padded(names, seed, device):
    """Draw a padded batch with holes in the mask; the fourth sequence has no counted token."""
    torch.manual_seed(seed)
    shape = len(LENGTHS), max(LENGTHS)
    tensors = {name: torch.randn(shape, dtype=torch.float64) / 2 for name in names}
    mask = torch.rand(shape) < 0.7
    for row, length in enumerate(LENGTHS):
        mask[row, 0] = True
        mask[row, length:] = False
    mask[3] = False
    return {name: x.to(device) for name, x in {**tensors, "mask": mask}.items()}


def packed(x):
    """Pack a padded tensor. What pads the packed rows is NaN, or does not count."""
    fill = False if x.dtype == torch.bool else torch.nan
    result = torch.full((len(ROWS), TOKENS), fill, dtype=x.dtype, device=x.device)
    for row, (sequences, _) in enumerate(ROWS):
        pieces = torch.cat([x[sequence, : LENGTHS[sequence]] for sequence in sequences])
        result[row, : len(pieces)] = pieces
    return result


def packed_ids(device):
    """Number the sequences of the packed rows; their padding has a number of its own."""
    result = torch.full((len(ROWS), TOKENS), 99, device=device)
    for row, (sequences, numbers) in enumerate(ROWS):
        pieces = [[number] * LENGTHS[sequence] for sequence, number in zip(sequences, numbers, strict=True)]
        result[row, : len(sum(pieces, []))] = torch.tensor(sum(pieces, []), device=device)
    return result


def at_the_ends(x, mask):
    """Put the number of each padded sequence at its last counted token; elsewhere stands NaN, or False."""
    fill = False if x.dtype == torch.bool else torch.nan
    result = torch.full(mask.shape, fill, dtype=x.dtype, device=x.device)
    for row in mask.any(-1).nonzero().flatten():
        result[row, mask[row].nonzero()[-1]] = x[row]
    return result


def value_and_gradient(function, tensors, leaf, weights, **options):
    """Return the result, and the gradient of its weighted sum into one of the tensors."""
    x = tensors[leaf].detach().clone().requires_grad_()
    result = function(**{**tensors, leaf: x}, **options)
    if not result.requires_grad:
        return result, torch.zeros_like(x)
    # Weights where nothing counts could be NaN, and 0 times NaN is NaN.
    total = torch.where(tensors["mask"], result * weights, 0.0).sum()
    return result.detach(), torch.autograd.grad(total, x)[0]


def agrees(function, names, seed, device, **options):
    """Compare value and gradient of the two forms; return how many tokens count."""
    tensors = padded(names, seed, device)
    weights = torch.rand_like(tensors[names[0]]) + 0.5
    rows = {name: packed(x) for name, x in tensors.items()}
    expected = value_and_gradient(function, tensors, names[0], weights, **options)
    found = value_and_gradient(
        function, rows, names[0], packed(weights), sequence_ids=packed_ids(device), **options
    )
    for in_rows, in_padding in zip(found, expected, strict=True):
        torch.testing.assert_close(in_rows, packed(in_padding).nan_to_num(), rtol=1e-13, atol=0)
    return tensors["mask"].sum().item()
