"""The losses of the critic."""

from reference.lists import under_mask


def value_loss(values, returns, *, factor, mask=None):
    return under_mask(lambda V, R: factor * (V - R) ** 2, mask, values, returns)


def clipped_value_loss(values, old_values, returns, *, epsilon, factor, mask=None):
    def loss(V, old, R):
        return factor * max((V - R) ** 2, (min(max(V, old - epsilon), old + epsilon) - R) ** 2)

    return under_mask(loss, mask, values, old_values, returns)
