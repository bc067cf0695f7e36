"""Published files, as those who read them find them."""

import gzip
import io
import lzma
import zipfile
from pathlib import Path

from hypothesis import strategies as st

from tests.fuzz.damage import damaged
from tests.fuzz.format import Draw, Format
from workbench.datasets import (
    Foursquare,
    Gowalla,
    MovieLens,
    NetflixPrize,
    OnTheMap,
    checkins,
    ratings,
)

HEAD = "w_geocode,h_geocode,S000,SA01,SA02,SA03,SE01,SE02,SE03,SI01,SI02,SI03,createdate"
BLOCKS = ("010010201001000", "010010201001001", "010030102002003")


def lodes() -> dict[str, bytes]:
    rows = ((0, 2, 3), (1, 2, 2), (2, 0, 1))
    flows = [f"{BLOCKS[w]},{BLOCKS[h]},{n},{n},{'0,' * 8}20211018" for w, h, n in rows]
    names = [f'{b},{b[:2]},"Cañon, AL",{b[:5]},20211018' for b in BLOCKS]
    crosswalk = ["tabblk2010,st,ctyname,cty,createdate", *names, ""]
    return {
        "onthemap/al_od_main_JT00_2019.csv": "\n".join([HEAD, *flows, ""]).encode(),
        "onthemap/al_xwalk.csv": "\n".join(crosswalk).encode("latin-1"),
    }


MOVIELENS = {
    "ml-1m/ratings.dat": b"1::1193::5::978300760\n2::1::3::978300760\n1::3952::4::978220760\n",
    "ml-1m/users.dat": b"1::F::1::10::48067\n2::M::56::16::70072\n3::M::25::15::55117\n",
}
NETFLIX = {
    "netflix_prize/combined_data_1.txt": b"1:\n6,3,2005-09-06\n2649429,5,2004-02-29\n2:\n6,1,1999-11-11\n",
    "netflix_prize/combined_data_2.txt": b"3:\n30878,4,2005-12-26\n6,4,2005-12-31\n",
}
GOWALLA = {
    "gowalla/Gowalla_train.txt": b"0\t1\t28\r\n3\t2\t1",
    "gowalla/Gowalla_tune.txt": b"0\t0\t2\r\n",
    "gowalla/Gowalla_test.txt": b"0\t2\t1\r\n3\t1\t4",
    "gowalla/Gowalla_poi_coos.txt": b"0\t30.2\t-97.7\r\n1\t32.7\t-97\r\n2\t37.7\t-122.4",
}
SNAP = {
    "gowalla/loc-gowalla_totalCheckins.txt": b"0\t2010-10-19T23:55:27Z\t30.23\t-97.79\t22847\n"
    b"0\t2010-05-31T23:59:59Z\t30.23\t-97.79\t420315\n2\t2010-10-18T22:17:43Z\t59.2\t18.0\t9410\n"
}
TSMC = {
    "foursquare/dataset_TSMC2014_NYC.txt": b"470\t49bbd6c0f964a520f4531fe3\t4bf58dd8d48988d127951735\t"
    b"Arts & Crafts\t40.71\t-74.00\t-240\tTue Apr 03 18:00:09 +0000 2012\n"
    b"979\t4a43c0aef964a520c6a61fe3\t4bf58dd8d48988d1df941735\tCaf\xe9\t40.60\t-74.04\t-240\t"
    b"Tue Apr 03 18:00:25 +0000 2012\r\n"
}


def foursquare_as_small(monkeypatch) -> None:
    monkeypatch.setitem(checkins.FORMS, "nyc", (1083, 2))


def netflix_as_small(monkeypatch) -> None:
    monkeypatch.setattr(ratings, "PARTS", ((1, 2, 3), (3, 3, 2)))


def gowalla_as_small(monkeypatch) -> None:
    monkeypatch.setattr(checkins, "PLACES", 3)
    monkeypatch.setattr(checkins, "CHECKINS", {"train": 29, "tune": 2, "test": 5})


def published(dataset, files: dict[str, bytes], patch=lambda monkeypatch: None) -> Format:
    """Files as their publisher packs them, one of them damaged, before it was packed or after."""

    def write(folder: Path, draw: Draw) -> None:
        hurt = draw(st.sampled_from(sorted(files)))
        suffix = draw(st.sampled_from(["", ".gz", ".xz", ".zip"]))
        for name, content in files.items():
            before = name == hurt and (not suffix or draw(st.booleans()))
            content = draw(damaged([content])) if before else content
            packed = _packed(content, suffix, Path(name).name)
            if name == hurt and not before:
                packed = draw(damaged([packed]))
            path = folder / (name + suffix)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(packed)

    # a dataset is made anew: it may keep what it has read
    return Format(write, lambda folder: repr(dataset().load()), patch)


def _packed(content: bytes, suffix: str, name: str) -> bytes:
    match suffix:
        case ".gz":
            return gzip.compress(content, mtime=0)
        case ".xz":
            return lzma.compress(content)
        case ".zip":
            out = io.BytesIO()
            with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr(name, content)
            return out.getvalue()
    return content


PUBLISHED = {
    "lodes": published(lambda: OnTheMap(states=("al",)), lodes()),
    "movielens": published(MovieLens, MOVIELENS),
    "netflix": published(NetflixPrize, NETFLIX, netflix_as_small),
    "gowalla": published(Gowalla, GOWALLA, gowalla_as_small),
    "gowalla-snap": published(lambda: Gowalla("snap"), SNAP),
    "foursquare": published(Foursquare, TSMC, foursquare_as_small),
}
