"""Create a pipeline that works, with its test and sample records, in a folder of its name."""

from __future__ import annotations

import keyword
import os
import re
import sys
from typing import TYPE_CHECKING

from ripple.core.errors import InputError, OutputError

if TYPE_CHECKING:
    import argparse

EXAMPLES = ("ripple new vwap",)

RECORDS = "orders.csv"
_NAME = re.compile(r"[a-z][a-z0-9]*([_-][a-z0-9]+)*")

_PIPELINE = '''\
"""{title}: what each customer has ordered, by the hour."""

import ripple as rp


@rp.record(version=1)
class Order:
    customer: str
    product: str
    price: float = rp.field(gt=0)
    quantity: int = rp.field(gt=0)
    ordered_ns: rp.Timestamp


pipeline = (
    rp.Pipeline("{title}")
    .source("orders", Order)
    .derive("amount", amount=rp.col("price") * rp.col("quantity"))
    .partition("by-customer", key="customer")
    .window("hourly", rp.Tumbling("1h"), lateness="10min", future="1h")
    .fold("spent", orders=rp.count(), spent=rp.sum("amount"), dearest=rp.max("price"))
    .sink("out")
)

if __name__ == "__main__":
    rp.run(pipeline, source="orders.csv", sink="-")
'''

_TEST = '''\
"""Run it with: python -m pytest"""

from {module} import pipeline
from ripple.testing import check_pipeline, crash_test

HOUR_NS = 3_600_000_000_000
ORDERS = [
    {{
        "customer": ("ann", "bob")[number % 2],
        "product": "tea",
        "price": 2.5 + number,
        "quantity": 1 + number % 3,
        "ordered_ns": number * HOUR_NS // 4,
    }}
    for number in range(12)
]


def test_it_computes_what_one_event_at_a_time_would() -> None:
    check_pipeline(pipeline, ORDERS)


def test_it_survives_crashes() -> None:
    crash_test(pipeline, ORDERS, seeds=range(2), every=40)
'''

_ORDERS = """\
# customer,product,price,quantity,ordered_ns
ann,tea,4.50,2,1709000000000000000
bob,cups,12.00,4,1709000300000000000
ann,kettle,39.90,1,1709000900000000000
bob,tea,4.50,1,1709003700000000000
ann,honey,6.25,2,1709007200000000000
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "name", metavar="NAME", help="of the pipeline, and of the folder created for it"
    )


def run(options: argparse.Namespace) -> int:
    """Write the files; return the exit code."""
    name: str = options.name
    if not _NAME.fullmatch(name):
        raise InputError(
            f"invalid name {name!r}: use lowercase letters, digits and single hyphens, as in "
            "my-orders"
        )
    module = name.replace("-", "_")
    if keyword.iskeyword(module):
        raise InputError(f"{name} is a keyword of Python, not a module's name: choose another one")
    if module in sys.stdlib_module_names or module in ("ripple", "worker", "coordinator"):
        raise InputError(f"{name} would hide a module of that name: choose another one")
    try:
        os.mkdir(name)
    except FileExistsError:
        raise OutputError(f"{name} exists: choose another name") from None
    except OSError as error:
        raise OutputError(f"cannot make {name}: {error.strerror}") from error
    test = f"test_{module}.py"
    for file, text in {
        f"{module}.py": _PIPELINE.format(title=name),
        test: _TEST.format(module=module),
        RECORDS: _ORDERS,
    }.items():
        with open(os.path.join(name, file), "x", encoding="utf-8") as written:
            written.write(text)
    print(
        f"{name}: created {module}.py, its test {test}, and sample records\n\n"
        f"  cd {name}\n"
        f"  ripple run {module}.py --source {RECORDS} --sink -\n"
        f"  ripple plan {module}.py\n"
        "  python -m pytest"
    )
    return 0
