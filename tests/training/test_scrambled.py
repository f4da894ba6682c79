"""Scrambled pictures: the same pixels in another order, the same order in every epoch."""

import numpy as np
import torch

from labelclean.training.scrambled import Scrambled
from labelclean.training.task import Features


def batches_of(scrambled, *batches, epoch=None):
    return list(scrambled.batches((np.array(one) for one in batches), epoch))


def test_strange_samples_keep_their_pixels_and_lose_their_order():
    pictures = np.random.default_rng(0).integers(0, 255, (6, 8, 12, 3)).astype(np.uint8)
    scrambled = Scrambled(Features(pictures), np.array([1, 4]), seed=3)
    assert len(scrambled) == 6
    first, second = batches_of(scrambled, [4, 0, 1], [2, 3])
    np.testing.assert_array_equal(second, pictures[[2, 3]])
    np.testing.assert_array_equal(first[1], pictures[0])
    for place, row in ((0, 4), (2, 1)):
        changed = first[place].numpy()
        assert (changed != pictures[row]).mean() > 0.5
        tiles = changed.reshape(4, 2, 4, 3, 3).swapaxes(1, 2).reshape(16, -1)
        before = pictures[row].reshape(4, 2, 4, 3, 3).swapaxes(1, 2).reshape(16, -1)
        assert sorted(map(bytes, tiles)) == sorted(map(bytes, before))


def test_a_sample_is_scrambled_alike_in_every_batch_and_epoch():
    maps = np.random.default_rng(0).random((4, 5, 5, 2)).astype(np.float16)
    before = maps.copy()
    scrambled = Scrambled(Features(maps), np.array([2]), seed=0)
    alone, among = batches_of(scrambled, [2], [0, 2], epoch=1)
    assert torch.equal(alone[0], among[1])
    again = batches_of(Scrambled(Features(maps), np.array([2]), seed=0), [2], epoch=7)
    assert torch.equal(alone, again[0])
    np.testing.assert_array_equal(maps, before)


def test_pictures_of_one_pixel_stay():
    tiny = np.ones((2, 1, 1, 3), np.uint8)
    assert batches_of(Scrambled(Features(tiny), np.array([0]), 0), [0, 1])[0].shape == (2, 1, 1, 3)
