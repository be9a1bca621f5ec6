// SPDX-License-Identifier: Apache-2.0
// The search tree: candidates and their parents, left to right.
"use strict";
(function () {
  // Leaves take rows in order; a parent is centred on its children. Iterative, because a tuner's
  // chain may be a thousand deep. A parent that is unknown, or younger than its child, is ignored.
  KP.layOut = function (rows) {
    var nodes = {}, children = {0: []}, depth = 0, leaves = 0;
    rows.forEach(function (row) { nodes[row.id] = {row: row, parent: 0, depth: 0, y: 0}; });
    rows.forEach(function (row) {
      var parent = row.parent < row.id && nodes[row.parent] ? row.parent : 0;
      nodes[row.id].parent = parent;
      (children[parent] = children[parent] || []).push(row.id);
    });
    var stack = [];
    function push(id) {
      var list = children[id] || [];
      for (var i = list.length - 1; i >= 0; i -= 1) stack.push([list[i], false]);
    }
    push(0);
    while (stack.length) {
      var top = stack.pop(), node = nodes[top[0]], list = children[top[0]];
      if (top[1]) {
        node.y = (nodes[list[0]].y + nodes[list[list.length - 1]].y) / 2;
        continue;
      }
      node.depth = node.parent ? nodes[node.parent].depth + 1 : 0;
      depth = Math.max(depth, node.depth);
      if (!list) { node.y = leaves; leaves += 1; continue; }
      stack.push([top[0], true]);
      push(top[0]);
    }
    return {nodes: nodes, depth: depth, leaves: leaves};
  };

  KP.treeChart = function (run) {
    var rows = run.rows.concat(run.head.waiting || []).slice();
    rows.sort(function (a, b) { return a.id - b.id; });
    if (!rows.length) return KP.el("p", {"class": "quiet"}, "No candidates yet.");
    var layout = KP.layOut(rows), path = {}, dead = run.head.dead || {};
    var line = layout.leaves > 200 ? 8 : layout.leaves > 60 ? 11 : 18;
    var column = Math.max(26, Math.min(190, 1180 / Math.max(1, layout.depth)));
    var width = 48 + column * layout.depth, height = 28 + line * Math.max(1, layout.leaves - 1);
    function x(node) { return 24 + column * node.depth; }
    function y(node) { return 14 + line * node.y; }
    ((run.head.result || {}).path || []).forEach(function (id) { path[id] = true; });
    var edges = [], best = [], dots = [];
    rows.forEach(function (row) {
      var node = layout.nodes[row.id];
      if (node.parent) {
        var from = layout.nodes[node.parent], middle = ((x(from) + x(node)) / 2).toFixed(1);
        (path[row.id] ? best : edges).push("M" + x(from).toFixed(1) + " " + y(from).toFixed(1) + "C" + middle + " " +
          y(from).toFixed(1) + " " + middle + " " + y(node).toFixed(1) + " " + x(node).toFixed(1) + " " + y(node).toFixed(1));
      }
      var out = row.id === run.best ? " best" : row.id === run.start ? " start" : "";
      dots.push(KP.svg("circle", {"class": "node " + run.color(row) + out + (dead[row.id] ? " dead" : ""), "data-id": row.id,
                                  cx: x(node).toFixed(1), cy: y(node).toFixed(1), r: out ? 6.5 : line < 10 ? 3 : 4.5},
                       KP.svg("title", null, KP.title(row) + (dead[row.id] ? "\ndead end: " + dead[row.id] : ""))));
    });
    return KP.el("div", {"class": "tree-box", tabindex: "0"},
      KP.svg("svg", {"class": "tree", id: "tree", width: width.toFixed(0), height: height.toFixed(0), role: "img",
                     "aria-label": "search tree"},
             KP.svg("path", {"class": "edge", d: edges.join("")}),
             KP.svg("path", {"class": "edge on-path", d: best.join("")}), dots));
  };
})();
