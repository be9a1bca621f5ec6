// SPDX-License-Identifier: Apache-2.0
// The page's pure functions, in node: run by report_test.cc where there is one.
"use strict";
const assert = require("assert"), fs = require("fs"), path = require("path"), vm = require("vm");
global.document = {addEventListener() {}};
global.window = {addEventListener() {}};
for (const part of ["base", "diff", "charts", "tree", "table", "detail", "run"]) {
  vm.runInThisContext(fs.readFileSync(path.join(__dirname, part + ".js"), "utf8"), part + ".js");
}
const KP = globalThis.KP;

// Numbers.
assert.strictEqual(KP.us(0.25), "250 ns");
assert.strictEqual(KP.us(999.6), "1.00 ms");
assert.strictEqual(KP.us(4350), "4.35 ms");
assert.strictEqual(KP.us(0), "\u2013");
assert.strictEqual(KP.ratio(7.914), "7.91x");
assert.strictEqual(KP.ratio(123.4), "123x");
assert.strictEqual(KP.percent(0.0994), "9.9 %");
assert.strictEqual(KP.share(1.05), ">100 %");
assert.strictEqual(KP.scaled(4.2e12, "B/s"), "4.20 TB/s");
assert.strictEqual(KP.clean("a\u202eb\u0007\nc"), "a?b?\nc");
assert.strictEqual(KP.speedClass(0.5, 4), "s0");
assert.strictEqual(KP.speedClass(1, 4), "s1");
assert.strictEqual(KP.speedClass(2, 4), "s3");
assert.strictEqual(KP.speedClass(4, 4), "s5");

// An account's small parts are shown as one, and none is lost.
const parts = [100, 60, 0.2, 0.1, 0].map((us, i) => ({us, kind: "wait", words: "part " + i, how: "", level: "timing"}));
assert.deepStrictEqual(KP.partsShown(parts, 160.3).map((part) => part.us), [100, 60, 0.2 + 0.1]);
assert.strictEqual(KP.partsShown(parts, 160.3)[2].words, "2 smaller parts");
assert.strictEqual(KP.partsShown(parts.slice(0, 3), 160.2).length, 3);

// Differences: any two texts are rebuilt from theirs, with as few edits as there can be.
function rebuilt(lines, not) { return lines.filter((l) => l.kind !== not).map((l) => l.text).join("\n"); }
function longestCommon(a, b) {
  const table = [new Array(b.length + 1).fill(0)];
  a.forEach((x, i) => {
    table.push([0]);
    b.forEach((y, j) => table[i + 1].push(x === y ? table[i][j] + 1 : Math.max(table[i][j + 1], table[i + 1][j])));
  });
  return table[a.length][b.length];
}
let seed = 1;
function random(n) { seed = (seed * 1103515245 + 12345) % 2147483648; return Math.floor(seed / 65536) % n; }
for (let round = 0; round < 300; round += 1) {
  const make = () => Array.from({length: random(20)}, () => "line " + random(6));
  const a = make(), b = make(), lines = KP.diffLines(a.join("\n"), b.join("\n"));
  assert.strictEqual(rebuilt(lines, "add"), a.join("\n"));
  assert.strictEqual(rebuilt(lines, "del"), b.join("\n"));
  assert.strictEqual(KP.diffCounts(lines).same, longestCommon(a, b));
}
// Unchanged lines and long deletions are folded, and nothing is lost.
const many = Array.from({length: 100}, (x, i) => "line " + i);
const without = many.slice(0, 30).concat(many.slice(70));
const folded = KP.foldDiff(KP.diffLines(many.join("\n"), without.join("\n")));
assert.deepStrictEqual(folded.filter((l) => l.kind === "fold").map((l) => l.what),
                       ["27 unchanged lines", "34 deleted lines", "27 unchanged lines"]);
assert.strictEqual(folded.reduce((n, l) => n + (l.lines ? l.lines.length : 1), 0), 100);
// Texts without a common line do not take for ever.
const far = KP.diffLines(many.map((l) => l + "a").join("\n"), many.map((l) => l + "b").join("\n"));
assert.strictEqual(KP.diffCounts(far).same, 0);

// Filters and order.
const rows = [{id: 1, parent: 0, outcome: "correct", us: 100, ratio: 1, by: "start", idea: ""},
              {id: 2, parent: 1, outcome: "correct", us: 40, ratio: 2.5, by: "tuner", idea: "Wider loads"},
              {id: 3, parent: 1, outcome: "compile-error", by: "model", idea: "TMA"}];
function ids(filter) { return rows.filter(KP.parseFilter(filter)).map((row) => row.id); }
assert.deepStrictEqual(ids(""), [1, 2, 3]);
assert.deepStrictEqual(ids("wider LOADS"), [2]);
assert.deepStrictEqual(ids("outcome:comp"), [3]);
assert.deepStrictEqual(ids(">2x by:tuner"), [2]);
assert.deepStrictEqual(ids("<0.05ms"), [2]);
assert.deepStrictEqual(ids("#1"), [1, 2, 3]);
assert.deepStrictEqual(ids("[("), []);
assert.deepStrictEqual(KP.sortRows(rows, "us", false).map((row) => row.id), [2, 1, 3]);
assert.deepStrictEqual(KP.sortRows(rows, "ratio", true).map((row) => row.id), [2, 1, 3]);

// The tree: a chain of thousands, a missing parent, a circle.
const chain = Array.from({length: 5000}, (x, i) => ({id: i + 1, parent: i}));
assert.strictEqual(KP.layOut(chain).depth, 4999);
const odd = KP.layOut([{id: 1, parent: 2}, {id: 2, parent: 1}, {id: 3, parent: 99}]);
assert.strictEqual(odd.leaves, 2);

// Ticks.
assert.deepStrictEqual(KP.linearTicks(0, 10, 5), [0, 2, 4, 6, 8, 10]);
assert.deepStrictEqual(KP.linearTicks(0, 0.3, 3), [0, 0.1, 0.2, 0.3]);
assert.ok(KP.logTicks(1e-3, 1e9, 6).length <= 7);
assert.deepStrictEqual(KP.logTicks(1, 10, 6), [1, 2, 5, 10]);
for (const range of [1e-9, 0.37, 1, 2.5, 7, 1234, 1e12]) {
  const step = KP.niceStep(range, 5);
  assert.ok(range / step <= 5 + 1e-9 && range / step >= 1, range + " " + step);
}
console.log("ok");
