"""The kinds of files that strangers may hand over: whole ones, damaged ones, and what is done with them."""

from tests.fuzz.banks import (
    use_budget,
    use_fits,
    use_session,
    write_budget,
    write_fits,
    write_session,
)
from tests.fuzz.format import Format
from tests.fuzz.published import (
    GOWALLA,
    MOVIELENS,
    NETFLIX,
    SNAP,
    TIST,
    TSMC,
    foursquare_as_small,
    gowalla_as_small,
    lodes,
    movielens_as_small,
    netflix_as_small,
    published,
)
from tests.fuzz.saved import use_release, write_csv_release, write_release
from tests.fuzz.stated import (
    table_format,
    use_columns,
    use_domain,
    use_queries,
    write_domain,
    write_queries,
)
from workbench.datasets import Foursquare, Gowalla, MovieLens, NetflixPrize, OnTheMap

FORMATS = {
    "release": Format(write_release, use_release),
    "release-csv": Format(write_csv_release, use_release),
    "session": Format(write_session, use_session),
    "budget": Format(write_budget, use_budget),
    "fits": Format(write_fits, use_fits),
    "domain": Format(write_domain, use_domain),
    "queries": Format(write_queries, use_queries),
    "csv": table_format("csv"),
    "gz": table_format("csv.gz"),
    "zst": table_format("csv.zst"),
    "parquet": table_format("parquet"),
    "interactions": table_format("parquet")._replace(use=use_columns),
    "lodes": published(lambda: OnTheMap(states=("al",)), lodes()),
    "movielens": published(MovieLens, MOVIELENS, movielens_as_small),
    "netflix": published(NetflixPrize, NETFLIX, netflix_as_small),
    "gowalla": published(Gowalla, GOWALLA, gowalla_as_small),
    "gowalla-snap": published(lambda: Gowalla("snap"), SNAP),
    "foursquare-city": published(Foursquare, TSMC, foursquare_as_small),
    "foursquare-world": published(lambda: Foursquare("world"), TIST, foursquare_as_small),
}
