"""The losses of the critic."""

from reference.lists import under_mask


def value_loss(values, returns, *, mask=None):
    return under_mask(lambda V, R: (V - R) ** 2 / 2, mask, values, returns)


def clipped_value_loss(values, old_values, returns, *, epsilon, mask=None):
    def loss(V, old, R):
        return max((V - R) ** 2, (min(max(V, old - epsilon), old + epsilon) - R) ** 2) / 2

    return under_mask(loss, mask, values, old_values, returns)
