"""Convert sessions with Spark: pip install pyspark segue; `spark-submit corpus_spark.py IN OUT`."""

import json
import sys
from collections.abc import Iterator

from pyspark.sql import SparkSession

from segue import corpora
from segue.errors import InputError


def convert(file: tuple[str, bytes]) -> Iterator[str]:
    """Yield the rows of a file as lines of JSON; a worker calls it."""
    name, content = file
    try:
        for row in corpora.convert_session(bytes(content), to="template"):
            yield json.dumps(row)
    except InputError as error:
        yield json.dumps({"rejected": name, "reason": str(error)})


if __name__ == "__main__":
    spark = SparkSession.builder.getOrCreate()
    spark.sparkContext.binaryFiles(sys.argv[1]).flatMap(convert).saveAsTextFile(sys.argv[2])
