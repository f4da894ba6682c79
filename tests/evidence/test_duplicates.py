"""Groups of rows that show the same picture, from real pictures and what is done to copies."""

import io

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits, load_sample_images

from labelclean.data.images import DEFAULT_LIMITS
from labelclean.data.scan import scan_images
from labelclean.data.sources import EmbeddedImages
from labelclean.evidence.duplicates import DuplicateGroups, group_duplicates, no_duplicates
from labelclean.evidence.together import hush_twins, join_groups, keep_together
from labelclean.workflows.duplicates import find_duplicates

SIDE = 96


def encoded(picture, form="PNG", **more):
    file = io.BytesIO()
    picture.save(file, form, **more)
    return file.getvalue()


def cropped(picture, share=0.05):
    width, height = picture.size
    return picture.crop((0, round(share * height), round((1 - share) * width), height))


CHANGES = {
    "encoded": lambda picture: encoded(picture, "JPEG", quality=60),
    "scaled": lambda picture: encoded(picture.resize((60, 70), Image.Resampling.BICUBIC)),
    "cropped": lambda picture: encoded(cropped(picture)),
    "mirrored": lambda picture: encoded(picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)),
    "mirrored and encoded": lambda picture: encoded(
        picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT), "JPEG", quality=50
    ),
}


@pytest.fixture(scope="module")
def pictures():
    """12 pieces of two photographs that do not overlap."""
    found = []
    for photograph in load_sample_images().images:
        for top in (40, 230):
            for left in (0, 200, 400):
                piece = Image.fromarray(photograph[top : top + 190, left : left + 190])
                found.append(piece.resize((SIDE, SIDE), Image.Resampling.BOX))
    return found


def groups_of(contents):
    source = EmbeddedImages(contents, None, DEFAULT_LIMITS)
    return find_duplicates(scan_images(source, workers=1), source)


def test_different_pictures_are_no_duplicates(pictures):
    assert not len(groups_of([encoded(picture) for picture in pictures]).row)


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_copy_is_found_and_is_near(pictures, change):
    originals = [encoded(picture) for picture in pictures]
    found = groups_of(originals + [CHANGES[change](picture) for picture in pictures])
    pairs = {tuple(rows.tolist()) for rows in found.members()}
    assert pairs <= {(row, 12 + row) for row in range(12)}
    assert len(pairs) >= 11
    assert not found.exact.any()


def test_the_same_content_is_exact_and_hangs_together_with_near_copies(pictures):
    originals = [encoded(picture) for picture in pictures]
    found = groups_of([*originals, originals[3], CHANGES["encoded"](pictures[3])])
    assert [rows.tolist() for rows in found.members()] == [[3, 12, 13]]
    assert found.exact.tolist() == [True, True, False]


def test_uniform_pictures_are_only_duplicates_of_their_own_content():
    grey = [encoded(Image.new("RGB", (40, 40), (level,) * 3)) for level in (10, 90, 180, 90)]
    assert [rows.tolist() for rows in groups_of(grey).members()] == [[1, 3]]


def test_handwritten_digits_are_alike_and_no_copies():
    digits = load_digits().images[:400]
    contents = [encoded(Image.fromarray((digit * 15.9).astype(np.uint8))) for digit in digits]
    assert len(groups_of(contents).row) <= 4


def test_features_are_compared_by_content_alone():
    found = group_duplicates([np.array([1, 4])], np.ones(6, bool), None, None)
    assert found.row.tolist() == [1, 4]
    assert found.exact.all()


def test_conflicts_and_leaks_follow_labels_and_splits():
    groups = DuplicateGroups(np.array([0, 2, 3, 5]), np.array([0, 1, 0, 1]), np.ones(4, bool))
    assert groups.conflicts(np.array([0, 0, 1, 0, 0, 2])).tolist() == [2, 5]
    split = np.array(["train", "train", "train", "test", "train", "train"], object)
    assert groups.leaks(split, 6).tolist() == [3, -1, -1, 0, -1, -1]
    assert (groups.leaks(None, 6) == -1).all()
    assert not len(no_duplicates().conflicts(np.zeros(3, np.int64)))


def test_copies_share_a_fold_and_others_keep_theirs():
    fold = np.array([0, 1, 2, 3, 0, 1])
    assert keep_together(fold, np.array([-1, 7, -1, 7, 2, 2])).tolist() == [0, 1, 2, 1, 0, 0]


def test_groups_of_the_user_are_joined_by_a_common_picture():
    group = np.array(["a", "a", "b", "c", "c"], object)
    joined = join_groups(group, np.array([-1, 0, 0, -1, -1]))
    assert len({*joined[:3]}) == 1
    assert joined[3] == joined[4] != joined[0]


def test_a_copy_has_no_vote_about_its_twin():
    near = np.array([[1, 2], [0, 2], [0, 1]])
    similar = np.full((3, 2), 0.9, np.float32)
    hushed = hush_twins(near, similar, np.array([5, 5, -1]))
    assert (hushed[:, 0] < -1).tolist() == [True, True, False]
    assert (hushed[:, 1] > 0).all()
