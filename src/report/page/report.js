// SPDX-License-Identifier: Apache-2.0
// The saved report: its data are in the page.
"use strict";
(function () {
  var data = JSON.parse(document.getElementById("data").textContent);
  var root = document.getElementById("page");
  var page = KP.runPage(root, data.head, data.rows, {
    detail: function (id) {
      var one = data.candidates[id];
      if (!one) return Promise.reject(new Error("candidate " + id + " is not in this report"));
      return Promise.resolve(Object.assign({}, one, {source: data.sources[one.source]}));
    },
    href: function (id) { return "#c" + id; },
    picked: function (id) {
      try { history.replaceState(null, "", "#c" + id); } catch (error) { /* a sandboxed frame */ }
    },
  });
  function follow() {
    var id = Number((/^#c(\d+)$/.exec(location.hash) || [])[1]);
    if (id) page.pick(id, false);
  }
  window.addEventListener("hashchange", follow);
  follow();
})();
