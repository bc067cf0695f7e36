"""Stories draw the same integers as Python, and open at any address."""

import numpy as np
import pytest

from workbench import Domain, NamedMarginals
from workbench.data import Bound, Records
from workbench.estimates import NoisyAnswers
from workbench.figures import stories
from workbench.inference import KernelPCA, isotonic, tree_least_squares
from workbench.inference.consistency import tree_sums
from workbench.mechanisms import BasicAdaptiveHistogram, adaptive
from workbench.noise import variance
from workbench.privacy import DP

WORD = 2**32


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stories")
    stories.write_stories(folder, "../../report.html")
    return folder


@pytest.fixture
def story(opened, folder):
    """Open a story at an address. An error on the page or a request fails the test."""
    opened.set_viewport_size({"width": 1400, "height": 900})

    def show(name, address=""):
        opened.goto((folder / f"{name}.html").as_uri() + address)
        return opened

    yield show
    assert all(url.startswith("file:") for url in opened.context.asked)


def press(page, place, *keys):
    page.locator(place).focus()
    for key in keys:
        page.keyboard.press(key)


def drag(page, place, start, end, steps=1):
    """From one place in a picture to another, in parts of its width and height."""
    box = page.locator(place).bounding_box()
    (x, y), (to_x, to_y) = (
        (box["x"] + box["width"] * u, box["y"] + box["height"] * v) for u, v in (start, end)
    )
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(to_x, to_y, steps=steps)
    page.mouse.up()


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
    """The noisy table, and its summary by a filter and priority sampling."""
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
    "seed, e, limit, each", [(7, 2, 3, False), (99, 0, 8, False), (1, 7, 0, True)]
)
def test_the_page_of_contributions_draws_what_python_draws(story, seed, e, limit, each):
    page = story("contributions")
    drawn = page.evaluate(f"published({seed}, {e}, {limit}, {str(each).lower()})")
    limits, next_word = page.evaluate("limits"), words(seed)
    counts = np.zeros((2, 24), int)
    for person in stories.visits():
        order = sorted([(next(next_word), place) for place in person], key=lambda pair: pair[0])
        np.add.at(counts[0], person, 1)
        np.add.at(counts[1], [place for _, place in order[: limits[limit]]], 1)
    epsilon, bits = page.evaluate("epsilons")[e], page.evaluate("bits")
    laws = [
        stories.thresholds(epsilon, 1 if each else n, bits) for n in (limits[-1], limits[limit])
    ]
    for place in range(24):
        word = next(next_word)
        counts[:, place] += [noise(word, law, bits) for law in laws]
    assert list(drawn["every"]) == counts[0].tolist()
    assert list(drawn["idea"]) == counts[1].tolist()


DEPTH, CELLS = 6, 4**6
FIRST = [(4**level - 1) // 3 for level in range(DEPTH + 2)]  # number of each level's first node


def released(monkeypatch, people, mechanism, seed):
    """The package's release of a map, with the words of the page as its noise."""
    word = [w for w, _ in zip(words(seed), range(CELLS + FIRST[-2] + FIRST[-1]), strict=False)]
    tree = stories.homes().hierarchy
    x, y = tree.corners(np.arange(CELLS, dtype=np.uint64)[None])
    counts = np.array(people)[y * 64 + x]
    records = Records(
        tree, np.flatnonzero(counts).astype(np.uint64), counts[counts > 0], Bound(1)
    )
    frontiers, leaves = [], []

    def drawn(place, levels, keys, epsilon):
        nodes = np.take(FIRST, levels) + (keys[0].astype(int) >> 2 * (DEPTH - levels))
        law = stories.thresholds(epsilon, 1, 20)
        return np.array([noise(word[place + node], law, 20) for node in nodes], int)

    def counts_of(self, frontier):
        frontiers.append(frontier)
        return frontier.counts

    def noisy_threshold(counts, zeros, *, threshold, epsilon, **rest):
        frontier, receipt = (
            frontiers[-1],
            real_threshold(counts, zeros, threshold=threshold, epsilon=epsilon, **rest).receipt,
        )
        level = np.array(frontier.level)
        noisy = counts + drawn(CELLS, level, frontier.nodes, epsilon)
        empty = drawn(CELLS, level, frontier.empty, epsilon)
        return noisy >= threshold, np.flatnonzero(empty >= threshold), receipt

    def in_order(stopped):
        leaves[:] = real_order(stopped)
        return leaves

    def geometric(counts, *, epsilon, **rest):
        levels, keys = leaves
        noisy = counts + drawn(CELLS + FIRST[-2], levels.astype(int), keys, epsilon)
        return noisy, real_geometric(counts, epsilon=epsilon, **rest)[1]

    real_threshold, real_geometric = adaptive.noise.noisy_threshold, adaptive.noise.geometric
    real_order = adaptive._in_order
    monkeypatch.setattr(adaptive.Discount, "counts", counts_of)
    monkeypatch.setattr(adaptive, "_in_order", in_order)
    monkeypatch.setattr(adaptive.noise, "noisy_threshold", noisy_threshold)
    monkeypatch.setattr(adaptive.noise, "geometric", geometric)
    return mechanism(records, np.random.default_rng(0))


@pytest.mark.parametrize(
    "seed, e, b, address",
    [(7, 2, 9, ""), (4294967295, 0, 6, "#m=0&p=AApQ.pQgggh"), (0, 9, 0, ""), (5, 4, 17, "")],
)
def test_the_tree_of_the_page_is_that_of_the_package(story, monkeypatch, seed, e, b, address):
    page = story("adaptive", address)
    people = page.evaluate("Array.from(people)")
    drawn = page.evaluate(f"published(people, {seed}, {e}, {b})")
    epsilon, limit = page.evaluate(f"[epsilons[{e}], limits[{b}]]")
    release = released(monkeypatch, people, stories.improved(epsilon, limit), seed)
    levels, keys = release.estimate.levels, release.estimate.keys[0].astype(int)
    keys >>= 2 * (DEPTH - levels)
    leaves = np.stack([levels, keys, release.estimate.values], axis=1)
    assert drawn["leaves"] == leaves.tolist()
    split = {
        FIRST[level - up] + (key >> 2 * up)
        for level, key in zip(levels.tolist(), keys.tolist(), strict=True)
        for up in range(1, level + 1)
    }
    assert sorted(drawn["splits"]) == sorted(split)
    law, next_word = stories.thresholds(epsilon, 1, 20), words(seed)
    assert drawn["every"] == [n + noise(next(next_word), law, 20) for n in people]
    assert release.privacy.epsilon == pytest.approx(page.evaluate(f"costs(6, {e}).improved"))


@pytest.mark.parametrize("levels", [1, 2, 6])
@pytest.mark.parametrize("e", [0, 9])
def test_the_basic_tree_costs_what_the_package_charges(story, levels, e):
    page = story("adaptive")
    cost = page.evaluate(f"costs({levels}, {e})")
    price, counts = page.evaluate(f"[prices.comparisons[{e}], prices.leaves[{e}]]")
    basic = BasicAdaptiveHistogram(
        DP(cost["basic"]), threshold=1000, depth=levels, measure=counts / cost["basic"]
    )
    assert basic.budgets() == pytest.approx([price] * levels + [counts])
    release = basic(stories.homes(), np.random.default_rng(0))
    assert release.privacy.epsilon == pytest.approx(cost["basic"])


def test_a_lower_threshold_keeps_every_split(story):
    page = story("adaptive")
    last = set()
    for b in range(17, 5, -1):
        split = set(page.evaluate(f"published(people, 3, 2, {b}).splits"))
        assert last <= split
        last = split
    assert len(last) > 100


def test_people_are_painted_erased_and_kept_in_the_address(story):
    page = story("adaptive", "#m=0")
    total = "people.reduce((sum, n) => sum + n)"
    assert page.evaluate(total) == 0
    drag(page, "#truth", (0.5, 0.5), (0.6, 0.5))
    assert page.evaluate(total) == 400
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Space")
    assert page.evaluate(total) == 600
    page.keyboard.press("Delete")
    assert page.evaluate(total) < 450
    page.wait_for_function("/p=[\\w-]{6}\\.[\\w-]{2}$/.test(location.hash)")
    assert page.locator("#dots").evaluate("dots => dots.style.opacity") == "0.3"
    people, address = page.evaluate("Array.from(people)"), page.url
    page.goto("about:blank")
    page.goto(address)
    assert page.evaluate("Array.from(people)") == people
    assert page.locator("#note").is_hidden()
    page.locator("#clear").click()
    assert page.evaluate(total) == 0
    page.locator("#clear").click()
    assert page.evaluate(total) == stories.homes().total


def test_a_threshold_that_the_package_refuses_is_raised(story):
    page = story("adaptive", "#e=0&b=0")
    assert "the least threshold is 30" in page.inner_text("#note")
    assert page.inner_text("#b-out") == "30" and stories.improved(0.1, 20) is None
    press(page, "#b", "ArrowRight")
    assert page.locator("#note").is_hidden()
    press(page, "#b", "ArrowLeft", "ArrowLeft")
    page.wait_for_selector("text=the least threshold is 30")
    lines = page.locator("#splits path")
    assert lines.count() == page.evaluate("published(people, state.d, 0, 6).splits.length")
    assert lines.first.evaluate("line => getComputedStyle(line).animationName") == "split"
    page.emulate_media(reduced_motion="reduce")
    assert lines.first.evaluate("line => getComputedStyle(line).animationName") == "none"


def test_stories_link_to_each_other_and_to_the_front(folder):
    page = (folder / "sparse.html").read_text("utf-8")
    assert 'href="adaptive.html"' in page and 'href="../../report.html"' in page
    assert 'href="sparse.html"' not in page
    assert "Front page" not in stories.story("sparse")


@pytest.mark.parametrize("seed, e, shape", [(7, 2, 0), (4294967295, 0, 1), (0, 8, 2)])
def test_the_page_of_consistency_draws_what_python_draws(story, seed, e, shape):
    page = story("consistency")
    page.select_option("#shape", str(shape))
    drawn = page.evaluate(f"published({seed}, {e})")
    name, counts = page.evaluate("shapes")[shape]
    places, epsilon, bits = (page.evaluate(x) for x in ("places", f"epsilons[{e}]", "bits"))
    assert sorted(counts) == counts and sorted(places) == list(range(32))
    leaves = [counts[i] for i in places]
    next_word = words(seed)

    def noisy(truth, sensitivity):
        law = stories.thresholds(epsilon, sensitivity, bits)
        return [int(count) + noise(next(next_word), law, bits) for count in truth]

    assert drawn["sorted"] == noisy(counts, 1) and drawn["flat"] == noisy(leaves, 1)
    assert drawn["tree"] == noisy(tree_sums(leaves), 6)
    assert np.allclose(drawn["isotonic"], isotonic(drawn["sorted"]), rtol=0, atol=1e-9)
    consistent = tree_least_squares(drawn["tree"])
    assert np.allclose(drawn["consistent"], consistent, rtol=0, atol=1e-9)


def test_errors_of_ranges_are_those_of_least_squares(story):
    """Over all ranges of a size, by the matrix of the tree; the page has them for the range it shows."""
    tree = np.stack([tree_sums(leaf) for leaf in np.eye(32)], axis=1)
    covariance = np.linalg.inv(tree.T @ tree)
    factors = stories.range_factors(6)
    for size, nodes, consistent in zip(*factors.values(), strict=True):
        low = np.arange(33 - size)[:, None]
        ranges = ((np.arange(32) >= low) & (np.arange(32) < low + size)) * 1.0
        assert np.isclose(
            np.einsum("ri,ij,rj->r", ranges, covariance, ranges).mean(), consistent
        )
        inside = ranges @ tree.T == tree.sum(axis=1)
        fewest = inside.sum(axis=1) - 2 * (
            inside[:, :31] & inside[:, 1::2] & inside[:, 2::2]
        ).sum(axis=1)
        assert np.isclose(fewest.mean(), nodes)
    page = story("consistency", "#t=1&x=3&w=20&e=2")
    inside = (np.arange(32) >= 3) & (np.arange(32) < 23)
    error = np.sqrt(inside @ covariance @ inside * variance(6, 0.2, "geometric"))
    assert f"{error:.0f} if the tree is consistent" in page.inner_text("#says")
    assert page.locator('#idea rect[fill="var(--ask)"]').count() == len(
        page.evaluate("nodesOf(3, 23)")
    )


def test_bars_are_dragged_and_moved_by_keys_and_stay_in_order(story):
    page = story("consistency", "#i=3")
    press(page, "#truth", "ArrowRight", "Shift+ArrowUp", "ArrowUp")
    page.wait_for_function("location.hash.includes('i=4&')")
    counts = page.evaluate("counts()")
    assert counts[3:6] == [3, 9, 9] and counts == sorted(counts)
    drag(page, "#truth", (0.9, 0.5), (0.9, 0.99))
    page.wait_for_function("$('shape').value === ''")
    counts = page.evaluate("counts()")
    assert counts[:29] == [0] * 29 and counts[29] >= 28 and counts[30:] == [55, 55]
    assert "3 different values" in page.inner_text("#says")


def test_tabs_lead_to_the_tree_where_a_range_is_asked(story):
    page = story("consistency")
    press(page, "#tab-0", "ArrowRight")
    page.wait_for_function("location.hash.includes('t=1')")
    assert page.locator("#k").is_visible() and page.locator("#shape").is_hidden()
    press(page, "#truth", "ArrowLeft", "Shift+ArrowLeft")
    page.wait_for_function("location.hash.includes('x=4&w=18')")
    page.locator('#idea rect[data-node="2"]').click()
    page.wait_for_function("location.hash.includes('x=16&w=16')")
    before = page.inner_text("#idea-says")
    page.locator("#k").uncheck()
    page.wait_for_function("location.hash.includes('k=0')")
    assert page.inner_text("#idea-says") != before
    page.wait_for_function("document.querySelectorAll('#dots circle').length === 60")


@pytest.mark.parametrize(
    "seed, e, alpha, bought",
    [
        (7, 4, 5, [8, 0, 26, 35]),
        (3, 0, 0, [14]),
        (4294967295, 7, 7, range(25)),
        (0, 8, 3, range(36)),
    ],
)
def test_the_bank_draws_and_infers_what_python_does(story, seed, e, alpha, bought):
    page = story("bank")
    drawn = page.evaluate(f"published({seed}, {e})")
    names, pays, alphas, bits = (page.evaluate(x) for x in ("names", "pays", "alphas", "bits"))
    tables = stories.pair_tables()
    next_word, anew = words(seed), words(seed)
    for kind, epsilon, source in (
        ("bought", 1 / pays[e], next_word),
        ("anew", 1 / pays[e], next_word),
        ("every", 1 / 36, anew),
    ):
        law = stories.thresholds(epsilon, 1, bits)
        for table, noisy in zip(tables.values(), drawn[kind], strict=True):
            assert noisy == [int(n) + noise(next(source), law, bits) for n in table.ravel()]

    pairs = list(tables)
    shape = tuple(len(values) for values in page.evaluate("values"))
    domain = Domain(tuple(names), shape)
    noisy = [np.reshape(drawn["bought"][p], tables[pairs[p]].shape) for p in bought]
    prior = [np.ones(n) for n in shape]
    for k in range(9):
        own = [
            (pairs[p], table) for p, table in zip(bought, noisy, strict=True) if k in pairs[p]
        ]
        margins = [table.sum(axis=1 - pair.index(k)) for pair, table in own]
        weights = [shape[k] / table.size for _, table in own]
        if own:
            prior[k] = np.maximum(1, np.average(margins, axis=0, weights=weights))
    asked = NamedMarginals(tuple((names[i], names[j]) for i, j in (pairs[p] for p in bought)))
    history = NoisyAnswers(
        domain,
        asked,
        np.concatenate([t.ravel() for t in noisy]),
        variance(1, 1 / pays[e], "geometric"),
    )
    posterior = KernelPCA(alphas[alpha], 2000, tuple(map(tuple, prior)))(history)
    every = NamedMarginals(tuple((names[i], names[j]) for i, j in pairs))
    inferred = page.evaluate(
        f"infer({list(bought)}, published({seed}, {e}).bought, {e}, {alphas[alpha]}).flat()"
    )
    assert np.allclose(inferred, posterior.answer(every), rtol=0, atol=1e-9)


def test_enter_and_clicks_buy_until_the_budget_is_spent(story):
    page = story("bank", "#e=0&p=0&b0=0&b1=0&b2=0")
    press(page, "#idea", "Enter", "Enter", "ArrowDown", "ArrowRight", "Enter")  # once only
    page.wait_for_function("location.hash.endsWith('b0=1&b1=9&b2=0')")
    assert "0.5 of 1 on 2 pairs" in page.inner_text("#says")
    dim = page.evaluate("$('idea').children[pairOf(0, 3)].firstChild.style.fillOpacity")
    page.locator("#idea .cell").nth(15).click()
    page.locator("#idea .cell").nth(35).click()
    page.wait_for_function("document.querySelectorAll('#idea .bought').length === 4")
    assert page.locator("#buy").is_disabled()
    page.locator("#idea .cell").nth(3).click()
    page.wait_for_function("location.hash.includes('p=3&')")
    assert page.evaluate("purchases") == [0, 8, 15, 35]
    assert page.evaluate("$('idea').children[pairOf(0, 3)].firstChild.style.fillOpacity") > dim
    page.locator("#over").click()
    page.wait_for_function("document.querySelectorAll('#idea .bought').length === 0")


@pytest.mark.parametrize("epsilon, sensitivity", [(0.05, 1), (1.0, 1), (0.5, 20)])
def test_thresholds_are_those_of_geometric_noise(epsilon, sensitivity):
    """Each probability is exact to one step of 2⁻³¹, and so is the mean size."""
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
    page = story("adaptive", "#b=99&p=AA!B")
    assert "asked for b = 99, p." in page.inner_text("#note") and page.url.endswith("&p=AA")
    page = story("consistency", "#c3=40")
    assert "not in order" in page.inner_text("#note")
    assert page.evaluate("counts()")[3:30] == [40] * 27
    page = story("bank", "#e=0&b0=4&b1=4&b2=5&b3=99")
    assert "buys a pair twice" in page.inner_text("#note")
    assert page.evaluate("bought()") == [3, 4, 35]
    page = story("contributions", "#e=3&l=4&r=1")
    assert page.locator("#note").is_hidden() and "for each single visit" in page.inner_text(
        "#says"
    )


def test_keys_move_the_question_and_sliders_the_sentence(story):
    page = story("sparse", "#x=10&y=10&w=5&h=5")
    before = page.inner_text("#true-answer")
    press(page, "#truth", "ArrowRight", "ArrowDown", "Shift+ArrowRight")
    page.wait_for_function("location.hash.includes('x=11&y=11&w=6&h=5')")
    assert page.inner_text("#true-answer") != before
    said = page.inner_text("#says")
    press(page, "#t", "End")
    page.wait_for_function("location.hash.includes('t=60')")
    assert page.inner_text("#says") != said
    assert page.locator("#dots circle").count() == 40


def test_a_dragged_rectangle_is_asked(story):
    page = story("sparse")
    table = stories.sparse_table().reshape(96, 96)
    drag(page, "#truth", (0.5, 0.4), (0.1, 0.2), steps=4)
    page.mouse.move(300, 700)  # the button is up
    page.wait_for_function("location.hash.includes('x=9&y=19&w=40&h=20')")
    assert page.inner_text("#true-answer") == f"{table[19:39, 9:49].sum():,}"


def test_a_range_is_dragged_over_counts_and_over_nodes(story):
    page = story("consistency", "#t=1")
    drag(page, "#truth", (0.1, 0.5), (0.9, 0.5), steps=4)
    page.wait_for_function("state.x > 0 && state.x + state.w < 32 && state.w > 20")
    drag(
        page, "#idea", (0.05, 0.35), (0.4, 0.35)
    )  # the third row has four nodes of eight leaves
    page.wait_for_function("location.hash.includes('x=0&w=16')")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("address", [*stories.STORIES, "consistency#t=1"])
def test_stories_fit_a_phone_and_one_screen(story, address, scheme):
    name, _, state = address.partition("#")
    page = story(name, "#" + state)
    page.emulate_media(color_scheme=scheme)
    assert page.evaluate("state.d") == 7, "an address names its draw"
    assert page.evaluate("document.documentElement.scrollHeight") <= 900
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
