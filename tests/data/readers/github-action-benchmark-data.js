window.BENCHMARK_DATA = {
  "lastUpdate": 1600000100000,
  "repoUrl": "https://example.org/parts",
  "entries": {
    "Benchmark": [
      {
        "commit": {"id": "aaaa", "message": "One", "timestamp": "2020-09-13T12:26:40Z"},
        "date": 1600000000000,
        "tool": "cargo",
        "benches": [
          {"name": "join", "value": 1500, "range": "± 20", "unit": "ns/iter"},
          {"name": "size", "value": 2.5, "unit": "MB"}
        ]
      },
      {
        "commit": {"id": "bbbb", "message": "Two", "timestamp": "2020-09-13T12:28:20Z"},
        "date": 1600000100000,
        "tool": "customBiggerIsBetter",
        "benches": [
          {"name": "join", "value": 1250, "range": "± 30", "unit": "ns/iter"},
          {"name": "score", "value": 7, "unit": "points", "extra": "of 10"}
        ]
      }
    ]
  }
}
