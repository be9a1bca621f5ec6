// SPDX-License-Identifier: Apache-2.0
"use strict";
(function () {
  var table = document.getElementById("candidates");
  var body = table ? table.tBodies[0] : null;
  var names = ["candidate", "parent", "outcome", "time", "speed-up", "of ceiling", "change", "findings"];

  function key(row, column) {
    var cell = row.cells[column];
    var value = cell.getAttribute("data-sort");
    if (value === null) return cell.textContent.trim().toLowerCase();
    var number = Number(value);
    return value !== "" && !isNaN(number) ? number : value;
  }

  function sort(column) {
    var head = table.tHead.rows[0].cells[column];
    var down = head.getAttribute("aria-sort") === "ascending";
    var rows = Array.prototype.slice.call(body.rows);
    rows.sort(function (a, b) {
      var x = key(a, column), y = key(b, column);
      return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1);
    });
    Array.prototype.forEach.call(table.tHead.rows[0].cells, function (cell) {
      cell.removeAttribute("aria-sort");
    });
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    rows.forEach(function (row) { body.appendChild(row); });
  }

  function describe(row) {
    var list = document.createElement("dl");
    names.forEach(function (name, i) {
      if (!row.cells[i].textContent.trim()) return;
      var term = document.createElement("dt");
      var text = document.createElement("dd");
      term.textContent = name;
      Array.prototype.forEach.call(row.cells[i].childNodes, function (node) {
        text.appendChild(node.cloneNode(true));
      });
      Array.prototype.forEach.call(text.querySelectorAll("details"), function (d) { d.open = true; });
      list.appendChild(term);
      list.appendChild(text);
    });
    return list;
  }

  function pick(id) {
    Array.prototype.forEach.call(document.querySelectorAll(".node.picked, tr.picked"), function (e) {
      e.classList.remove("picked");
    });
    Array.prototype.forEach.call(document.querySelectorAll('[data-id="' + id + '"]'), function (e) {
      e.classList.add("picked");
    });
    var row = document.getElementById("c" + id);
    var panel = document.getElementById("picked");
    if (!row || !panel) return;
    panel.textContent = "";
    panel.className = "picked filled";
    panel.appendChild(describe(row));
  }

  if (table) {
    Array.prototype.forEach.call(table.tHead.rows[0].cells, function (cell, i) {
      cell.addEventListener("click", function () { sort(i); });
    });
  }
  document.addEventListener("click", function (event) {
    var node = event.target.closest ? event.target.closest(".node") : null;
    if (node) pick(node.getAttribute("data-id"));
  });
  var best = document.querySelector("#tree .node.best");
  if (best) {
    pick(best.getAttribute("data-id"));
    var box = document.querySelector(".tree-box");
    if (box) box.scrollTop = Math.max(0, Number(best.getAttribute("cy")) - box.clientHeight / 2);
  }
  document.documentElement.setAttribute("data-ready", String(document.querySelectorAll("#tree .node").length));
})();
