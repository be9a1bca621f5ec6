// SPDX-License-Identifier: Apache-2.0
// Elements, numbers in words, colours. All text from outside enters the page through `el` or
// `svg`, which make text nodes of it: nothing here ever parses HTML.
"use strict";
var KP = {};
if (typeof globalThis !== "undefined") globalThis.KP = KP;

(function () {
  // Control characters and those that turn the direction of a text could hide what it is.
  KP.clean = function (text) {
    return String(text).replace(
      /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "?");
  };

  function fill(node, attributes, children) {
    Object.keys(attributes || {}).forEach(function (name) {
      var value = attributes[name];
      if (value === null || value === undefined || value === false) return;
      if (name.slice(0, 2) === "on") node.addEventListener(name.slice(2), value);
      else node.setAttribute(name, value === true ? "" : KP.clean(value));
    });
    add(node, children);
    return node;
  }

  function add(node, child) {
    if (child === null || child === undefined || child === false || child === "") return;
    if (Array.isArray(child)) child.forEach(function (each) { add(node, each); });
    else node.appendChild(child.nodeType ? child : document.createTextNode(KP.clean(child)));
  }

  // el("p", {"class": "quiet"}, "text", node, [more]); without attributes: null.
  KP.el = function (tag, attributes) {
    return fill(document.createElement(tag), attributes, Array.prototype.slice.call(arguments, 2));
  };
  KP.svg = function (tag, attributes) {
    return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes,
                Array.prototype.slice.call(arguments, 2));
  };
  KP.replace = function (node) {
    node.textContent = "";
    add(node, Array.prototype.slice.call(arguments, 1));
    return node;
  };

  // Three significant digits: "0.0123", "4.50", "123".
  KP.digits = function (x) {
    if (x === 0) return "0";
    if (!isFinite(x)) return "\u2013";
    if (Math.abs(x) < 100) x = Number(x.toPrecision(3));
    var size = Math.floor(Math.log10(Math.abs(x)) + 1e-9);
    return size >= 2 ? String(Math.round(x)) : x.toFixed(Math.min(8, 2 - size));
  };
  KP.us = function (us) {
    if (!(us > 0)) return "\u2013";
    if (us < 0.9995) return KP.digits(us * 1e3) + " ns";
    if (us < 999.5) return KP.digits(us) + " us";
    if (us < 999.5e3) return KP.digits(us / 1e3) + " ms";
    return KP.digits(us / 1e6) + " s";
  };
  KP.seconds = function (s) {
    if (s < 60) return KP.digits(s) + " s";
    if (s < 3600) return Math.floor(s / 60) + " min " + Math.round(s % 60) + " s";
    return Math.floor(s / 3600) + " h " + Math.round(s % 3600 / 60) + " min";
  };
  KP.ratio = function (x) {
    if (!(x > 0)) return "\u2013";
    return (x < 10 ? x.toFixed(2) : x < 100 ? x.toFixed(1) : x.toFixed(0)) + "x";
  };
  KP.percent = function (x) {
    return (x < 0.0995 ? (100 * x).toFixed(1) : (100 * x).toFixed(0)) + " %";
  };
  // A share of the ceiling; above 105 % it means nothing (core/machine/machine.h).
  KP.share = function (x) {
    return !(x > 0) ? "\u2013" : x >= 1.05 ? ">100 %" : KP.percent(x);
  };
  KP.scaled = function (x, unit) {
    var steps = ["", "k", "M", "G", "T", "P"], at = 0;
    while (x >= 999.5 && at < steps.length - 1) { x /= 1000; at += 1; }
    return KP.digits(x) + " " + steps[at] + unit;
  };
  KP.count = function (n, one, many) {
    return n + " " + (n === 1 ? one : many || one + "s");
  };

  // 0: slower than the baseline, 1: about as fast, to 5: close to the best. On a logarithmic
  // scale, so that every step is the same factor.
  KP.speedClass = function (ratio, best) {
    if (!(ratio > 0)) return "";
    if (ratio < 0.98) return "s0";
    if (!(best > 1.02)) return "s5";
    var t = Math.log(Math.max(1, ratio)) / Math.log(best);
    return "s" + Math.max(1, Math.min(5, 1 + Math.round(4 * t)));
  };

  KP.copyButton = function (what, text) {
    var button = KP.el("button", {type: "button", "class": "copy", title: "Copy " + what}, "Copy");
    button.addEventListener("click", function (event) {
      event.stopPropagation();
      var done = function (word) {
        button.textContent = word;
        setTimeout(function () { button.textContent = "Copy"; }, 1200);
      };
      var value = typeof text === "function" ? text() : text;
      if (navigator.clipboard && window.isSecureContext) {
        navigator.clipboard.writeText(value).then(
          function () { done("Copied"); }, function () { done(byHand(value)); });
      } else {
        done(byHand(value));
      }
    });
    return button;
  };

  // A page opened from a file may not use the clipboard's interface.
  function byHand(text) {
    var area = KP.el("textarea", {"class": "off-screen", "aria-hidden": "true"});
    area.value = text;
    document.body.appendChild(area);
    area.select();
    var copied = document.execCommand("copy");
    area.remove();
    return copied ? "Copied" : "Press Ctrl+C";
  }

  // Sets `code` between backquotes as code.
  KP.prose = function (text) {
    var parts = String(text || "").split("`");
    return parts.map(function (part, i) {
      var closed = i + 1 < parts.length;
      return i % 2 === 0 ? part : closed ? KP.el("code", null, part) : "`" + part;
    });
  };

  // heads: texts; a text that begins with "#" heads a column of numbers.
  KP.table = function (css, heads, rows) {
    var number = heads.map(function (head) { return head.charAt(0) === "#" ? "num" : null; });
    return KP.el("div", {"class": "scroll"}, KP.el("table", {"class": css},
      KP.el("thead", null, KP.el("tr", null, heads.map(function (head, i) {
        return KP.el("th", {"class": number[i]}, head.replace(/^#/, ""));
      }))),
      KP.el("tbody", null, rows.map(function (row) {
        return KP.el("tr", null, row.map(function (cell, i) {
          return KP.el("td", {"class": number[i]}, cell);
        }));
      }))));
  };
})();
