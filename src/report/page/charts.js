// SPDX-License-Identifier: Apache-2.0
// Charts as SVG: pure functions of a run's head and rows. A dot carries its candidate's number in
// data-id; whoever places the chart listens for clicks.
"use strict";
(function () {
  var kWidth = 640, kHeight = 300;
  var kLeft = 58, kRight = 14, kTop = 14, kBottom = 38;
  var kSlopeLabel = 100;  // width of the label at the roofline's slope

  function linear(low, high, from, to) {
    return function (x) { return from + (high > low ? (x - low) / (high - low) : 0.5) * (to - from); };
  }
  function logarithmic(low, high, from, to) {
    var scale = linear(Math.log(low), Math.log(high), from, to);
    return function (x) { return scale(Math.log(x)); };
  }

  // 1, 2 or 5 times a power of ten, so that about `count` steps cover the range.
  KP.niceStep = function (range, count) {
    var step = Math.pow(10, Math.floor(Math.log10(range / count)));
    return step * [1, 2, 5, 10].filter(function (f) { return range / (step * f) <= count * (1 + 1e-9); })[0];
  };
  KP.linearTicks = function (low, high, count) {
    if (!(high > low)) return [low];
    var step = KP.niceStep(high - low, count), ticks = [];
    for (var i = Math.ceil(low / step - 1e-9); i * step <= high * (1 + 1e-9); i += 1) {
      ticks.push(Number((i * step).toPrecision(12)));
    }
    return ticks;
  };
  // At 1, 2 and 5 times the powers of ten, or at fewer where there are many of them.
  KP.logTicks = function (low, high, count) {
    var choices = [[1, 2, 5], [1, 3], [1]];
    for (var c = 0; c < choices.length; c += 1) {
      var ticks = [];
      for (var e = Math.floor(Math.log10(low)); e <= Math.log10(high); e += 1) {
        choices[c].forEach(function (f) {
          var tick = f * Math.pow(10, e);
          if (tick >= low * 0.999 && tick <= high * 1.001) ticks.push(Number(tick.toPrecision(3)));
        });
      }
      if (ticks.length <= count || c === choices.length - 1) break;
    }
    var skip = Math.ceil(ticks.length / count);
    return ticks.filter(function (tick, i) { return i % skip === 0; });
  };

  function frame(label, xTicks, yTicks, x, y, xText, yText, xName, yName) {
    var svg = KP.svg("svg", {"class": "chart", viewBox: "0 0 " + kWidth + " " + kHeight, role: "img",
                             "aria-label": label});
    yTicks.forEach(function (tick) {
      svg.appendChild(line("grid", kLeft, y(tick), kWidth - kRight, y(tick)));
      svg.appendChild(text("end", kLeft - 8, y(tick) + 4, yText(tick)));
    });
    xTicks.forEach(function (tick) {
      svg.appendChild(line("tick", x(tick), kHeight - kBottom, x(tick), kHeight - kBottom + 4));
      svg.appendChild(text("middle", x(tick), kHeight - kBottom + 17, xText(tick)));
    });
    svg.appendChild(line("axis", kLeft, kHeight - kBottom, kWidth - kRight, kHeight - kBottom));
    svg.appendChild(text("end name", kWidth - kRight, kHeight - 6, xName));
    svg.appendChild(text("name", kLeft + 6, kTop + 4, yName));
    return svg;
  }
  function line(css, x1, y1, x2, y2) {
    return KP.svg("line", {"class": css, x1: x1.toFixed(1), y1: y1.toFixed(1), x2: x2.toFixed(1), y2: y2.toFixed(1)});
  }
  function text(css, x, y, words) {
    return KP.svg("text", {"class": css, x: x.toFixed(1), y: y.toFixed(1)}, words);
  }

  KP.title = function (row) {
    var words = "#" + row.id + " " + (row.us > 0 ? KP.us(row.us) : row.outcome);
    if (row.ratio > 0) words += ", " + KP.ratio(row.ratio);
    return words + (row.idea ? "\n" + row.idea.slice(0, 200) : "");
  };
  function dot(row, run, x, y, small) {
    var out = row.id === run.best ? " best" : row.id === run.start ? " start" : "";
    return KP.svg("circle", {"class": "node " + run.color(row) + out + (small && !out ? " small" : ""), "data-id": row.id, cx: x.toFixed(1),
                             cy: y.toFixed(1), r: out ? 5.5 : small ? 2.6 : 3.8},
                  KP.svg("title", null, KP.title(row)));
  }

  // The best so far over run time. Several runs: a line each.
  KP.progressChart = function (runs) {
    var last = 0, top = 1, bottom = 1;
    runs.forEach(function (run) {
      run.rows.forEach(function (row) {
        last = Math.max(last, row.at || 0);
        if (!(row.ratio > 0)) return;
        top = Math.max(top, row.ratio);
        bottom = Math.min(bottom, row.ratio);
      });
    });
    var wide = top > 8;
    // A run that gains a few per cent would lie in one line above an axis from nought.
    bottom = wide ? Math.max(bottom, top / 200) : bottom > 0.6 && top < 3 ? Math.floor(9.5 * bottom) / 10 : 0;
    top *= wide ? 1.3 : 1.12;
    var x = linear(0, last || 1, kLeft + 6, kWidth - kRight - 8);
    var y = (wide ? logarithmic : linear)(bottom, top, kHeight - kBottom - 12, kTop);
    var yTicks = wide ? KP.logTicks(bottom, top, 6) : KP.linearTicks(bottom, top, 5);
    var svg = frame("best speed-up over run time", KP.linearTicks(0, last || 1, 6), yTicks, x, y,
                    function (s) { return s + " s"; }, function (r) { return r + "x"; }, "run time", "speed-up");
    runs.forEach(function (run, i) {
      var many = run.rows.length > 300, path = "", best = 0;
      run.rows.forEach(function (row) {
        if (!(row.ratio > 0)) {
          var mark = line("failed " + row.outcome, x(row.at || 0), kHeight - kBottom - 7, x(row.at || 0), kHeight - kBottom);
          mark.setAttribute("data-id", row.id);
          svg.appendChild(mark);
          return;
        }
        if (row.ratio > best) {
          if (path) path += "H" + x(row.at).toFixed(1) + "V" + y(row.ratio).toFixed(1);
          else path = "M" + x(row.at).toFixed(1) + " " + y(row.ratio).toFixed(1);
          best = row.ratio;
        }
      });
      if (path) svg.appendChild(KP.svg("path", {"class": "best-line line-" + i, d: path + "H" + x(last).toFixed(1)}));
      run.rows.forEach(function (row) {
        if (row.ratio > 0) svg.appendChild(dot(row, run, x(row.at || 0), y(Math.max(row.ratio, bottom || 0)), many));
      });
    });
    return svg;
  };

  // Williams, Waterman, Patterson, CACM 52(4), 2009, with measured ceilings. All candidates do the
  // task's work, so they stand above each other; `selected` may show the bytes that it moved.
  KP.rooflineChart = function (run, selected) {
    var work = run.head.work, machine = run.head.machine;
    var timed = run.rows.filter(function (row) { return row.us > 0; });
    if (!work || !(work.bytes > 0) || !timed.length || !(machine.copy_bytes_per_s > 0)) return null;
    if (!(work.flops > 0)) return bandwidthChart(run, work, machine, timed);
    var roofs = [{name: "fp32 multiply-adds", rate: machine.fma_flops_per_s}];
    if (machine.tensor_flops_per_s > 0 && work.matmul_flops > 0) {
      roofs.push({name: "matrix units, half precision", rate: machine.tensor_flops_per_s});
    }
    roofs = roofs.filter(function (roof) { return roof.rate > 0; });
    var peak = Math.max.apply(null, roofs.map(function (roof) { return roof.rate; }));
    var intensity = work.flops / work.bytes, bandwidth = machine.copy_bytes_per_s;
    var rates = timed.map(function (row) { return work.flops / (row.us * 1e-6); });
    var least = Math.min.apply(null, rates);
    var low = Math.min(intensity, peak / bandwidth) / 8, high = Math.max(intensity, peak / bandwidth) * 8;
    var bottom = Math.max(Math.min(least, low * bandwidth) / 2, peak / 1e6);
    var x = logarithmic(low, high, kLeft, kWidth - kRight);
    var y = logarithmic(bottom, Math.max(peak, Math.max.apply(null, rates)) * 2.5, kHeight - kBottom, kTop);
    var svg = frame("roofline", KP.logTicks(low, high, 8), KP.logTicks(bottom, peak * 2.5, 6), x, y,
                    function (i) { return String(i); }, function (r) { return KP.scaled(r, ""); },
                    "FLOP per byte", "FLOP/s");
    roofs.forEach(function (roof) {
      var ridge = roof.rate / bandwidth;
      svg.appendChild(line("roof", Math.max(kLeft, x(ridge)), y(roof.rate), kWidth - kRight, y(roof.rate)));
      svg.appendChild(text("end roof-label", kWidth - kRight - 4, y(roof.rate) - 5,
                           roof.name + ", " + KP.scaled(roof.rate, "FLOP/s")));
    });
    var foot = Math.max(low, bottom / bandwidth);
    var left = x(foot), ridge = x(peak / bandwidth), low_y = y(foot * bandwidth);
    svg.appendChild(line("roof", left, low_y, ridge, y(peak)));
    // Above the slope to its end, where no candidate stands.
    var end = Math.min(1, kSlopeLabel / Math.max(1, ridge - left));
    svg.appendChild(text("roof-label", left + 6, low_y + end * (y(peak) - low_y) - 8,
                         "copy, " + KP.scaled(bandwidth, "B/s")));
    svg.appendChild(line("work", x(intensity), kTop, x(intensity), kHeight - kBottom));
    timed.forEach(function (row) {
      svg.appendChild(dot(row, run, x(intensity), y(Math.max(bottom, work.flops / (row.us * 1e-6))), timed.length > 300));
    });
    if (selected && selected.row.us > 0 && selected.detail.dram_bytes > 0) {
      var moved = Math.min(high, Math.max(low, work.flops / selected.detail.dram_bytes));
      svg.appendChild(KP.svg("circle", {"class": "moved", cx: x(moved).toFixed(1), r: 5,
        cy: y(work.flops / (selected.row.us * 1e-6)).toFixed(1)},
        KP.svg("title", null, "#" + selected.row.id + " by the bytes that it moved: " + KP.scaled(selected.detail.dram_bytes, "B"))));
    }
    return svg;
  };

  // A task that declares no arithmetic has one roof.
  function bandwidthChart(run, work, machine, timed) {
    var rates = timed.map(function (row) { return work.bytes / (row.us * 1e-6); });
    var top = Math.max(machine.copy_bytes_per_s, Math.max.apply(null, rates)) * 1.12;
    var last = Math.max.apply(null, timed.map(function (row) { return row.order; }));
    var x = linear(0, last, kLeft + 6, kWidth - kRight - 8), y = linear(0, top, kHeight - kBottom, kTop);
    var svg = frame("bandwidth", KP.linearTicks(0, last, 8), KP.linearTicks(0, top, 5), x, y, String,
                    function (r) { return KP.scaled(r, ""); }, "evaluation", "compulsory bytes per second");
    var roof = machine.copy_bytes_per_s;
    svg.appendChild(line("roof", kLeft, y(roof), kWidth - kRight, y(roof)));
    svg.appendChild(text("end roof-label", kWidth - kRight - 4, y(roof) - 5, "copy, " + KP.scaled(roof, "B/s")));
    timed.forEach(function (row, i) { svg.appendChild(dot(row, run, x(row.order), y(rates[i]), timed.length > 300)); });
    return svg;
  }

  // Time against energy, with the Pareto front; null when no energy was measured.
  KP.energyChart = function (run) {
    var known = run.rows.filter(function (row) { return row.us > 0 && row.mj > 0; });
    if (!known.length) return null;
    function range(name) {
      var all = known.map(function (row) { return row[name]; });
      var low = Math.min.apply(null, all), high = Math.max.apply(null, all);
      var room = (high - low || low) * 0.08;
      return [Math.max(0, low - room), high + room];
    }
    var xs = range("us"), ys = range("mj");
    var x = linear(xs[0], xs[1], kLeft, kWidth - kRight), y = linear(ys[0], ys[1], kHeight - kBottom, kTop);
    var svg = frame("energy over time of a call", KP.linearTicks(xs[0], xs[1], 6), KP.linearTicks(ys[0], ys[1], 5),
                    x, y, KP.us, function (mj) { return mj + " mJ"; }, "time of a call", "energy");
    var front = (run.head.front || []).map(run.find).filter(Boolean);
    if (front.length > 1) {
      svg.appendChild(KP.svg("path", {"class": "best-line", d: front.map(function (row, i) {
        return (i ? "L" : "M") + x(row.us).toFixed(1) + " " + y(row.mj).toFixed(1);
      }).join("")}));
    }
    known.forEach(function (row) { svg.appendChild(dot(row, run, x(row.us), y(row.mj), known.length > 300)); });
    return svg;
  };

  // Parts below half a per cent are shown together.
  KP.partsShown = function (parts, whole) {
    var shown = parts.filter(function (part) { return part.us >= 0.005 * whole; });
    var rest = parts.filter(function (part) { return part.us > 0 && part.us < 0.005 * whole; });
    if (rest.length < 2) return shown.concat(rest);
    var us = rest.reduce(function (sum, part) { return sum + part.us; }, 0);
    var names = rest.map(function (part) { return part.words + ": " + KP.us(part.us); });
    return shown.concat([{kind: "unknown", us: us, how: names.join("\n"), level: rest[0].level, words: KP.count(rest.length, "smaller part")}]);
  };

  // Parts that add up to a whole, as a bar with its list.
  KP.accountBar = function (parts, whole) {
    var left = 0;
    var shown = KP.partsShown(parts, whole);
    var bar = KP.svg("svg", {"class": "account-bar", viewBox: "0 0 1000 18", preserveAspectRatio: "none",
                             role: "img", "aria-label": "where the time goes"});
    shown.forEach(function (part, i) {
      var width = 1000 * part.us / whole;
      bar.appendChild(KP.svg("rect", {"class": "part-" + part.kind + " shade-" + i % 4, x: left.toFixed(1), y: 0,
                                      width: Math.max(0, width - 1.5).toFixed(1), height: 18},
                             KP.svg("title", null, part.words + ": " + KP.us(part.us) + ", " + KP.percent(part.us / whole))));
      left += width;
    });
    return KP.el("div", {"class": "account"}, bar, KP.el("ul", {"class": "parts"}, shown.map(function (part, i) {
      return KP.el("li", {title: part.how}, KP.el("span", {"class": "key part-" + part.kind + " shade-" + i % 4}),
                   KP.el("span", {"class": "words"}, part.words),
                   KP.el("b", null, KP.us(part.us)), KP.el("span", {"class": "quiet"}, KP.percent(part.us / whole)),
                   KP.el("span", {"class": "quiet level"}, "by " + part.level));
    })));
  };
})();
