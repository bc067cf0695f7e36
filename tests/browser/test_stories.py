"""The pages that compute in the browser: they draw what Python draws, and any address opens them."""

import numpy as np
import pytest

from tests.browser.conftest import CHROMIUM
from workbench.figures import stories

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed")
WORD = 2**32


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stories")
    stories.write_stories(folder)
    return folder


@pytest.fixture
def story(browser, folder):
    """Opens a story at an address; nothing may go wrong on it, or be fetched."""
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    wrong, asked = [], []
    page.on("pageerror", lambda error: wrong.append(error))
    page.on("request", lambda request: asked.append(request.url))

    def opened(name, address=""):
        page.goto((folder / f"{name}.html").as_uri() + address)
        return page

    yield opened
    page.close()
    assert wrong == [] and all(url.startswith("file:") for url in asked)


def words(seed):
    """Mulberry32, written anew."""
    while True:
        seed = (seed + 0x6D2B79F5) % WORD
        x = (seed ^ seed >> 15) * (seed | 1) % WORD
        x ^= (x + (x ^ x >> 7) * (x | 61)) % WORD
        yield x ^ x >> 14


def noise(word, thresholds, bits=31):
    size = int(np.searchsorted(thresholds, word >> 32 - bits, side="right"))
    return -size if word % 2 else size


def summary(seed, epsilon, theta, most):
    """The noisy table and what the filter and priority sampling leave of it."""
    table, next_word = stories.sparse_table(), words(seed)
    thresholds = stories.thresholds(epsilon)
    noisy = [int(n) + noise(next(next_word), thresholds) for n in table]
    kept = [i for i, n in enumerate(noisy) if n and abs(n) >= theta]
    if len(kept) <= most:
        return noisy, {i: noisy[i] for i in kept}
    priority = [abs(n) / ((next(next_word) + 0.5) / WORD) for n in noisy]
    kept.sort(key=lambda i: (-priority[i], i))
    least = priority[kept[most]]
    return noisy, {i: np.sign(noisy[i]) * max(abs(noisy[i]), least) for i in kept[:most]}


@pytest.mark.parametrize(
    "seed, e, theta, s", [(7, 10, 10, 6), (4294967295, 3, 25, 2), (0, 20, 0, 5)]
)
def test_the_sparse_page_draws_what_python_draws(story, seed, e, theta, s):
    page = story("sparse")
    drawn = page.evaluate(f"published({seed}, {e}, {theta}, {s})")
    sizes = [100, 200, 500, 1000, 2000, 5000, 10**9]
    every, kept = summary(seed, float(stories.EPSILONS[e]), theta, sizes[s])
    assert list(drawn["every"]) == every
    idea = list(drawn["idea"])
    assert {i: x for i, x in enumerate(idea) if x} == pytest.approx(kept, rel=1e-15)


@pytest.mark.parametrize(
    "seed, e, knife, each", [(7, 2, 3, False), (99, 0, 8, False), (1, 7, 0, True)]
)
def test_the_page_of_contributions_draws_what_python_draws(story, seed, e, knife, each):
    page = story("contributions")
    drawn = page.evaluate(f"published({seed}, {e}, {knife}, {str(each).lower()})")
    limits, next_word = page.evaluate("limits"), words(seed)
    counts = np.zeros((2, 24), int)
    for person in stories.visits():
        order = sorted([(next(next_word), place) for place in person], key=lambda pair: pair[0])
        np.add.at(counts[0], person, 1)
        np.add.at(counts[1], [place for _, place in order[: limits[knife]]], 1)
    epsilon, bits = page.evaluate("epsilons")[e], page.evaluate("bits")
    laws = [
        stories.thresholds(epsilon, 1 if each else n, bits) for n in (limits[-1], limits[knife])
    ]
    for place in range(24):
        word = next(next_word)
        counts[:, place] += [noise(word, law, bits) for law in laws]
    assert list(drawn["every"]) == counts[0].tolist()
    assert list(drawn["idea"]) == counts[1].tolist()


@pytest.mark.parametrize("epsilon, sensitivity", [(0.05, 1), (1.0, 1), (0.5, 20)])
def test_thresholds_are_those_of_geometric_noise(epsilon, sensitivity):
    """To one step of 2⁻³¹ for each magnitude; the mean size follows."""
    law = np.diff([0, *stories.thresholds(epsilon, sensitivity), 2**31]) / 2**31
    ratio = np.exp(-epsilon / sensitivity)
    sizes = np.arange(len(law) - 1)
    exact = (1 - ratio) / (1 + ratio) * ratio**sizes * np.where(sizes, 2, 1)
    assert np.abs(law[:-1] - exact).max() < 2**-30
    mean = stories.mean_noise(epsilon, sensitivity)
    assert np.isclose(law @ np.arange(len(law)), mean, rtol=1e-6)


def test_an_impossible_address_shows_the_nearest_setting_and_says_so(story):
    page = story("sparse", "#e=99&t=x&w=-3")
    assert page.locator("#note").is_visible() and "e = 99" in page.locator("#note").inner_text()
    assert "e=20&t=10" in page.url and "w=1&" in page.url
    page = story("contributions", "#e=3&l=4&r=1")
    assert page.locator("#note").is_hidden() and "for each single visit" in page.inner_text(
        "#says"
    )


def test_keys_move_the_question_and_sliders_the_sentence(story):
    page = story("sparse", "#x=10&y=10&w=5&h=5")
    before = page.inner_text("#true-answer")
    page.locator("#truth").focus()
    for key in ("ArrowRight", "ArrowDown", "Shift+ArrowRight"):
        page.keyboard.press(key)
    page.wait_for_function("location.hash.includes('x=11&y=11&w=6&h=5')")
    assert page.inner_text("#true-answer") != before
    said = page.inner_text("#says")
    page.locator("#t").focus()
    page.keyboard.press("End")
    page.wait_for_function("location.hash.includes('t=60')")
    assert page.inner_text("#says") != said
    assert page.locator("#dots circle").count() == 40


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", stories.TITLES)
def test_stories_fit_a_phone_and_one_screen(story, name, scheme):
    page = story(name)
    page.emulate_media(color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollHeight") <= 900
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
