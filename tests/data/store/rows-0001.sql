INSERT INTO machine (id, "key", name, digest, facts) VALUES (1, 'm', 'small', 'd1', '{"cores": "4"}');
INSERT INTO test (id, "key", name) VALUES (1, '4ca64716eb4590058c9c518fff528ad5773fe56a449f5592376ce72f15c1d0b2', 'sort');
INSERT INTO metric (id, "key", name, unit, kind) VALUES (1, 'e', 'elapsed', 's', 'cost');
INSERT INTO result (id, origin, content, source, trials, measured_us, added_us, commit_id) VALUES (1, 'o', 'c', '/old', 2, 1767225600000000, 1767225700000000, 'abcdef');
INSERT INTO tag (result_id, word) VALUES (1, 'v1');
INSERT INTO entry (id, result_id, test_id, metric_id, machine_id, measured_us, count, mean, deviation, median, lowest, highest, trials, sittings) VALUES (1, 1, 1, 1, 1, 1767225600000000, 2, 1.5, 0.70710678, 1.5, 1.0, 2.0, BYTES, '1x2');
