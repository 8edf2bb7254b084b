"""Images of a batch: Gymnasium's gray levels, the exact mean of areas, OpenCV's up to one level."""

import itertools
import re

import numpy as np
import pytest

from cartwheel._cartwheel import ImagePlan

try:
    import cv2
except ImportError:  # it has no wheels for musl
    cv2 = None  # type: ignore[assignment]
else:
    cv2.setNumThreads(1)  # it would keep its threads

SIZES = [(1, 1), (1, 9), (7, 5), (13, 17), (12, 18), (24, 36), (41, 31)]


def frames(count, *shape):
    return np.random.default_rng(sum(shape)).integers(0, 256, (count, *shape), np.uint8)


def gymnasium_gray(images):
    """The arithmetic of ``gymnasium.wrappers.GrayscaleObservation``."""
    weights = np.array([0.2125, 0.7154, 0.0721])
    return np.sum(np.multiply(images, weights), axis=-1).astype(np.uint8)


def means(images, height, width):
    """The mean of each area, in whole numbers, halves rounded up."""
    count, old_height, old_width, channels = images.shape
    fine = images.astype(np.int64).repeat(height, axis=1).repeat(width, axis=2)
    areas = fine.reshape(count, height, old_height, width, old_width, channels)
    points = old_height * old_width
    return ((2 * areas.sum(axis=(2, 4)) + points) // (2 * points)).astype(np.uint8)


def opencv(images, height, width):
    """The image that OpenCV makes of each frame."""
    if cv2 is None:
        pytest.skip("OpenCV is not installed")
    resized = [cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA) for image in images]
    return np.stack(resized).reshape(len(images), height, width, *images.shape[3:])


def resized(images, height, width, **keywords):
    _, old_height, old_width, *channels = images.shape
    plan = ImagePlan(
        old_height,
        old_width,
        channels[0] if channels else None,
        out_height=height,
        out_width=width,
        gray=False,
        **keywords,
    )
    return plan.run(images)


def gray_plan(height, width, **keywords):
    keywords = {"out_height": height, "out_width": width, "gray": True, **keywords}
    return ImagePlan(height, width, 3, **keywords)


def test_every_color_has_the_gray_level_of_gymnasium():
    """Also those whose weighted levels add up to a little less than a whole number."""
    plan = gray_plan(256, 256)
    two = np.stack(np.meshgrid(np.arange(256), np.arange(256), indexing="ij"), axis=-1)
    colors = np.empty((1, 256, 256, 3), np.uint8)
    colors[0, ..., 1:] = two
    below = 0
    for red in range(256):
        colors[..., 0] = red
        expected = gymnasium_gray(colors)
        np.testing.assert_array_equal(plan.run(colors), expected)
        exact = (colors.astype(np.int64) @ np.array([2125, 7154, 721])) // 10000
        below += np.count_nonzero(exact != expected)
    assert below == 63


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_a_pixel_is_the_exact_mean_of_its_area(channels):
    for (old_height, old_width), (height, width) in itertools.product(SIZES, SIZES):
        images = frames(2, old_height, old_width, channels)
        expected = means(images, height, width)
        np.testing.assert_array_equal(resized(images, height, width), expected)
        first = resized(images, height, width, channel_first=True)
        np.testing.assert_array_equal(first, np.moveaxis(expected, -1, 1))
        assert first.flags.c_contiguous


def test_a_size_is_opencvs_up_to_one_level_where_both_sides_shrink_or_grow():
    rises = [
        (old, new)
        for old, new in itertools.product(SIZES, SIZES)
        if (old[0] >= new[0] and old[1] >= new[1]) or (old[0] <= new[0] and old[1] <= new[1])
    ]
    assert len(rises) > 30
    for (old_height, old_width), (height, width) in [*rises, ((210, 160), (84, 84))]:
        for channels in ((), (3,)):
            images = frames(3, old_height, old_width, *channels)
            difference = resized(images, height, width) - opencv(images, height, width).astype(int)
            assert abs(difference).max() <= 1, f"{old_height}×{old_width} to {height}×{width}"


@pytest.mark.parametrize("factor", [1, 2, 3, 5])
def test_whole_factors_without_halves_have_opencvs_bits(factor):
    """OpenCV rounds halves up for a factor of 2, and half of them down for some others."""
    for height, width in [(4, 6), (7, 11), (21, 33)]:
        images = frames(4, factor * height, factor * width, 3)
        np.testing.assert_array_equal(resized(images, height, width), opencv(images, height, width))


def test_the_maximum_and_the_gray_come_before_the_size():
    first, second = frames(6, 42, 32, 3), frames(7, 42, 32, 3)[1:]
    for height, width in [(42, 32), (21, 16), (50, 7), (1, 1)]:
        plan = ImagePlan(42, 32, 3, out_height=height, out_width=width, gray=True)
        for second_frames in (None, second):
            larger = first if second_frames is None else np.maximum(first, second)
            expected = means(gymnasium_gray(larger)[..., None], height, width)[..., 0]
            np.testing.assert_array_equal(plan.run(first, second_frames), expected)
        colored = ImagePlan(42, 32, 3, out_height=height, out_width=width, gray=False)
        expected = means(np.maximum(first, second), height, width)
        np.testing.assert_array_equal(colored.run(first, second), expected)


def test_the_number_of_threads_changes_no_bit():
    images = frames(33, 210, 160, 3)
    plans = [
        ImagePlan(210, 160, 3, out_height=84, out_width=84, gray=True, num_threads=threads)
        for threads in (1, 2, 7, None)
    ]
    alone = np.concatenate([plans[0].run(image[None]) for image in images])
    for plan, count in itertools.product(plans, (0, 1, 3, 33)):
        got = plan.run(images[:count])
        assert got.shape == (count, 84, 84)
        np.testing.assert_array_equal(got, alone[:count])


def test_arrays_need_not_be_contiguous_and_are_not_changed():
    images = frames(4, 20, 30, 3)
    plan = ImagePlan(10, 30, 3, out_height=5, out_width=6, gray=False)
    before = images.copy()
    got = plan.run(images[:, ::2], images[::-1, 1::2])
    larger = np.maximum(images[:, ::2], images[::-1, 1::2])
    np.testing.assert_array_equal(got, means(larger, 5, 6))
    np.testing.assert_array_equal(images, before)
    frozen = images[:, ::2].copy()
    frozen.flags.writeable = False
    np.testing.assert_array_equal(plan.run(frozen), means(frozen, 5, 6))


def test_every_result_is_a_new_array():
    plan = gray_plan(8, 8)
    images = frames(3, 8, 8, 3)
    first = plan.run(images)
    kept = first.copy()
    second = plan.run(255 - images)
    assert not np.shares_memory(first, second)
    np.testing.assert_array_equal(first, kept)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"height": 0}, "`height` must be from 1 to 65536, got 0"),
        ({"width": 65537}, "`width` must be from 1 to 65536, got 65537"),
        ({"channels": 0}, "`channels` must be from 1 to 65536, got 0"),
        ({"out_height": 0}, "`out_height` must be from 1 to 65536, got 0"),
        ({"out_width": 70000}, "`out_width` must be from 1 to 65536, got 70000"),
        ({"channels": 4, "gray": True}, "gray needs 3 channels (red, green, blue), got 4"),
        ({"channels": None, "gray": True}, "gray needs 3 channels (red, green, blue), got 1"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(keywords, message):
    usual = {"height": 4, "width": 4, "channels": 3, "out_height": 2, "out_width": 2, "gray": False}
    with pytest.raises(ValueError, match=re.escape(message)):
        ImagePlan(**{**usual, **keywords})


def test_wrong_arrays_are_refused_with_what_is_expected():
    plan = gray_plan(4, 5)
    images = frames(2, 4, 5, 3)
    with pytest.raises(TypeError, match="`frames` must have dtype uint8, got float32"):
        plan.run(images.astype(np.float32))
    with pytest.raises(ValueError, match=r"must have shape \(N, 4, 5, 3\), got \(2, 4, 5\)"):
        plan.run(images[..., 0])
    with pytest.raises(ValueError, match=r"`frames` must have shape .*, got \(4, 5, 3\)"):
        plan.run(images[0])
    with pytest.raises(ValueError, match=r"`second` must have shape .*, got \(2, 4, 5, 1\)"):
        plan.run(images, images[..., :1])
    with pytest.raises(ValueError, match="`second` has 1 frames, but `frames` has 2"):
        plan.run(images, images[:1])
