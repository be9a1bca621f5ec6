// SPDX-License-Identifier: Apache-2.0
// A saved diagnosis: its data are in the page.
"use strict";
(function () {
  var data = JSON.parse(document.getElementById("data").textContent);
  KP.replace(document.getElementById("page"), KP.el("main", {"class": "diagnosis"},
    KP.el("h1", null, data.subject),
    KP.el("p", {"class": "quiet"}, data.basis),
    data.notes.map(function (note) { return KP.el("p", {"class": "quiet"}, KP.prose(note)); }),
    KP.diagnosisView(data.diagnosis)));
})();
