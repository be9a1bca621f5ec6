// SPDX-License-Identifier: Apache-2.0
// The live page: addresses after "#", the token, what the server says, the list of runs, two runs
// side by side, suites.
"use strict";
(function () {
  var root = document.getElementById("page"), bar = document.getElementById("bar");
  var shown = null;  // {leave()} of what is on the page
  var kToken = "kernelpro-token";

  // The printed link has the token after "#", which browsers send to nobody. It stays in this tab.
  function takeToken() {
    var found = /^(#[^?]*)\?token=([^&]+)$/.exec(location.hash);
    if (!found) return;
    sessionStorage.setItem(kToken, decodeURIComponent(found[2]));
    history.replaceState(null, "", found[1]);
  }
  function headers() { return {Authorization: "Bearer " + (sessionStorage.getItem(kToken) || "")}; }
  function Refused() { this.message = "the server asks for its token"; }

  function fetchJson(path, method) {
    return fetch(path, {method: method || "GET", headers: headers(), cache: "no-store"}).then(function (answer) {
      if (answer.status === 401) throw new Refused();
      return answer.json().then(function (json) {
        if (!answer.ok) throw new Error(json.error ? json.error + ": " + json.next : "the server answered " + answer.status);
        return json;
      });
    });
  }

  // Server-sent events, over fetch, since EventSource sends no header. Connects again when the
  // server is gone, with the address that `path()` has by then.
  function listen(path, on) {
    var stop = new AbortController(), wait = 500, timer = 0;
    function connect() {
      fetch(path(), {headers: headers(), cache: "no-store", signal: stop.signal}).then(function (answer) {
        if (answer.status === 401) { askToken(); return; }
        if (!answer.ok) throw new Error("the server answered " + answer.status);
        wait = 500;
        status("live");
        return read(answer.body.getReader());
      }).catch(function () {}).then(function () {
        if (stop.signal.aborted) return;
        status("not connected");
        timer = setTimeout(connect, wait);
        wait = Math.min(8000, 2 * wait);
      });
    }
    function read(reader) {
      var decoder = new TextDecoder(), text = "";
      function more(part) {
        if (part.done) return;
        text += decoder.decode(part.value, {stream: true});
        var events = text.split("\n\n");
        text = events.pop();
        events.forEach(function (each) {
          var name = /^event: (.*)$/m.exec(each), data = /^data: (.*)$/m.exec(each);
          if (name && data) on(name[1], JSON.parse(data[1]));
        });
        return reader.read().then(more);
      }
      return reader.read().then(more);
    }
    connect();
    return function () { clearTimeout(timer); stop.abort(); };
  }

  function status(word) {
    var node = document.getElementById("live");
    if (node) node.textContent = word;
  }
  function drawBar(crumbs) {
    KP.replace(bar, KP.el("a", {href: "#/"}, "KernelPro"), crumbs, KP.el("span", {"class": "live", id: "live", role: "status"}, ""));
  }
  function trouble(error) {
    if (error instanceof Refused) { askToken(); return; }
    KP.replace(root, KP.el("p", {"class": "error"}, String(error.message || error)),
               KP.el("p", null, KP.el("a", {href: "#/"}, "All runs")));
  }
  function askToken() {
    if (shown) shown.leave();
    shown = null;
    drawBar(null);
    var input = KP.el("input", {type: "password", "aria-label": "token", autocomplete: "off"});
    KP.replace(root, KP.el("form", {"class": "token", onsubmit: function (event) {
      event.preventDefault();
      sessionStorage.setItem(kToken, input.value.trim());
      route();
    }}, KP.el("h1", null, "Token"), KP.el("p", null, "Open the link that kernelpro serve printed, or paste its token here."), input, KP.el("button", null, "Open")));
    input.focus();
  }

  function isRunning(run) { return run.state === "running"; }
  function runLine(run, chosen, choose) {
    var box = KP.el("input", {type: "checkbox", "aria-label": "compare " + run.name, checked: chosen.indexOf(run.id) >= 0, onclick: function (event) {
      event.stopPropagation();
      choose(run.id, event.target.checked);
    }});
    if (run.error) {
      return KP.el("tr", {"data-id": run.id}, KP.el("td", null, run.name), KP.el("td", {"class": "error", colspan: 7}, run.error));
    }
    return KP.el("tr", {"data-id": run.id},
      KP.el("td", null, box, " ", KP.el("a", {href: "#/run/" + run.id}, run.name)),
      KP.el("td", null, KP.el("span", {"class": "state " + run.state}, run.state)),
      KP.el("td", {"class": "optional"}, run.task || ""), KP.el("td", {"class": "optional"}, run.target || ""),
      KP.el("td", {"class": "num"}, run.pending ? "\u2026" : run.speedup ? KP.ratio(run.speedup) : "\u2013"),
      KP.el("td", {"class": "num"}, run.best_us ? KP.us(run.best_us) : ""),
      KP.el("td", {"class": "num optional"}, run.fraction ? KP.share(run.fraction) : ""),
      KP.el("td", {"class": "num optional"}, run.pending ? "" : run.evaluated),
      KP.el("td", {"class": "optional"}, (run.created || "").replace("T", " ").replace("Z", "")));
  }

  function listPage() {
    var chosen = [], picked = 0, data = {runs: [], suites: []}, left = false, again = 0;
    drawBar(null);
    var input = KP.el("input", {type: "search", placeholder: "Filter runs", "aria-label": "Filter runs", oninput: draw});
    var compare = KP.el("button", {type: "button", disabled: true, onclick: function () { location.hash = "#/compare/" + chosen[0] + "/" + chosen[1]; }}, "Compare two");
    var body = KP.el("tbody", null), suites = KP.el("div", null), folder = KP.el("p", {"class": "quiet"});
    function visible() {
      var words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      return data.runs.filter(function (run) {
        var text = [run.name, run.task, run.target, run.state, run.machine].join(" ").toLowerCase();
        return words.every(function (word) { return text.indexOf(word) >= 0; });
      });
    }
    function choose(id, on) {
      chosen = chosen.filter(function (each) { return each !== id; });
      if (on) chosen.push(id);
      chosen = chosen.slice(-2);
      compare.disabled = chosen.length !== 2;
      draw();
    }
    function draw() {
      var runs = visible();
      KP.replace(body, runs.map(function (run, i) {
        var line = runLine(run, chosen, choose);
        if (i === picked) line.className = "picked";
        return line;
      }));
      if (!data.runs.length) KP.replace(body, KP.el("tr", null, KP.el("td", {colspan: 9}, "No runs yet. Start one: ", KP.el("code", null, "kernelpro optimize TASK --run " + (data.folder || "runs") + "/NAME"))));
      KP.replace(suites, !data.suites.length ? null : [KP.el("h2", null, "Suites"), KP.el("ul", null, data.suites.map(function (suite) {
        return KP.el("li", null, KP.el("a", {href: "#/suite/" + suite.id}, suite.name));
      }))]);
      KP.replace(folder, KP.count(data.runs.length, "run") + " in ", KP.el("code", null, data.folder || ""),
                 ", " + data.runs.filter(isRunning).length + " running");
    }
    function load() {
      clearTimeout(again);
      fetchJson("/runs").then(function (json) {
        if (left) return;
        data = json;
        draw();
        document.documentElement.setAttribute("data-ready", String(data.runs.length));
        if (data.runs.some(function (run) { return run.pending; })) again = setTimeout(load, 100);
      }, trouble);
    }
    function key(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target === input) {
        if (event.key === "Escape") { input.value = ""; draw(); input.blur(); }
        return;
      }
      var runs = visible();
      if (event.key === "j" || event.key === "k") {
        picked = Math.max(0, Math.min(runs.length - 1, picked + (event.key === "j" ? 1 : -1)));
        draw();
        if (body.children[picked]) body.children[picked].scrollIntoView({block: "nearest"});
      } else if (event.key === "x" && runs[picked]) choose(runs[picked].id, chosen.indexOf(runs[picked].id) < 0);
      else if (event.key === "c" && chosen.length === 2) compare.click();
      else if (event.key === "Enter" && event.target === document.body && runs[picked]) location.hash = "#/run/" + runs[picked].id;
      else if (event.key === "/") input.focus();
      else return;
      event.preventDefault();
    }
    body.addEventListener("click", function (event) {
      var line = event.target.closest("tr[data-id]");
      if (line && !event.target.closest("a, input")) location.hash = "#/run/" + line.getAttribute("data-id");
    });
    document.addEventListener("keydown", key);
    KP.replace(root, KP.el("header", null, KP.el("h1", null, "Runs"), folder), KP.el("div", {"class": "filter"}, input, compare),
      KP.el("table", {"class": "list"}, KP.el("thead", null, KP.el("tr", null, ["run", "state", "task", "target", "speed-up", "time", "of ceiling", "evaluations", "begun"].map(function (head, i) {
        return KP.el("th", {"class": i >= 4 && i <= 7 ? "num" : null}, head);
      }))), body), KP.el("section", null, suites),
      KP.el("footer", null, KP.el("kbd", null, "j"), " ", KP.el("kbd", null, "k"), " move, ", KP.el("kbd", null, "Enter"), " open, ", KP.el("kbd", null, "x"), " choose, ", KP.el("kbd", null, "c"), " compare, ", KP.el("kbd", null, "/"), " filter"));
    var stop = listen(function () { return "/events"; }, load);
    return {leave: function () { left = true; clearTimeout(again); stop(); document.removeEventListener("keydown", key); }};
  }

  function buttons(id) {
    return function (head) {
      function act(what, words) {
        return KP.el("button", {type: "button", onclick: function (event) {
          event.target.disabled = true;
          fetchJson("/run/" + id + "/" + what, "POST").then(function (json) { status(json.log ? "started; it prints to " + json.log : words); },
            function (error) { event.target.disabled = false; alert(error.message); });
        }}, what === "stop" ? "Stop" : "Resume");
      }
      return [head.state === "running" ? act("stop", "it stops after its current step") : act("resume", "started"),
        KP.el("button", {type: "button", onclick: function () { saveReport(id, head.task); }}, "Save report"),
        KP.el("a", {href: "#/"}, "Compare\u2026")];
    };
  }
  function saveReport(id, name) {
    fetch("/run/" + id + "/report", {headers: headers()}).then(function (answer) { return answer.blob(); }).then(function (blob) {
      var url = URL.createObjectURL(blob), link = KP.el("a", {href: url, download: name + ".html"});
      link.click();
      setTimeout(function () { URL.revokeObjectURL(url); }, 1000);
    });
  }

  function runPage(id, candidate) {
    var page = null, left = false, after = 0, commits = -1, stop = null;
    drawBar(null);
    KP.replace(root, KP.el("p", {"class": "quiet"}, "Reading the run\u2026"));
    var host = {
      detail: function (number) { return fetchJson("/run/" + id + "/candidate/" + number); },
      calls: function () { return fetchJson("/run/" + id + "/calls"); },
      href: function (number) { return "#/run/" + id + "/" + number; },
      picked: function (number) { history.replaceState(null, "", "#/run/" + id + "/" + number); },
      buttons: buttons(id),
    };
    function last(json) {
      commits = json.commits;
      json.rows.forEach(function (row) { after = Math.max(after, row.order); });
    }
    function show(json) {
      if (left) return;
      last(json);
      if (page) page.update(json.head, json.rows);
      else {
        drawBar(KP.el("span", null, json.head.directory));
        document.title = json.head.task + " \u00b7 KernelPro";
        page = KP.runPage(root, json.head, json.rows, host);
        if (candidate) page.pick(candidate);
      }
      document.documentElement.setAttribute("data-seen", String(after));
    }
    function follow() {
      if (left) return;
      stop = listen(function () { return "/events?run=" + id + "&after=" + after + "&commits=" + commits; }, function (name, json) {
        if (name === "run") show(json);
        else status(json.error + ": " + json.next);
      });
    }
    // A run that has only been announced has no store yet: its first event comes with it.
    fetchJson("/run/" + id).then(function (json) { show(json); follow(); }, function (error) {
      if (error instanceof Refused) { trouble(error); return; }
      KP.replace(root, KP.el("p", {"class": "quiet"}, "This run has not begun yet (" + error.message + ")."));
      follow();
    });
    return {pick: function (number) { if (page) page.pick(number, true); }, id: id,
            leave: function () { left = true; if (stop) stop(); if (page) page.leave(); }};
  }

  function comparePage(a, b) {
    var left = false;
    drawBar(KP.el("span", null, "two runs"));
    Promise.all([fetchJson("/run/" + a), fetchJson("/run/" + b)]).then(function (both) {
      if (left) return;
      var runs = both.map(function (json) { return KP.makeRun(json.head, json.rows); });
      function fact(name, of) {
        return KP.el("tr", null, KP.el("th", null, name), runs.map(function (run) { return KP.el("td", null, of(run.head, run.head.result)); }));
      }
      KP.replace(root, KP.el("header", null, KP.el("h1", null, "Side by side")),
        KP.el("div", {"class": "compare"}, runs.map(function (run, i) {
          return KP.el("section", null, KP.el("h2", null, KP.el("a", {href: "#/run/" + run.head.id}, run.head.directory)),
            KP.el("p", null, KP.el("span", {"class": "big"}, KP.ratio(run.head.result.speedup))), KP.el("p", null, run.head.result.verdict));
        })),
        runs[0].head.task !== runs[1].head.task ? KP.el("p", {"class": "error"}, "These are different tasks: compare speed-ups, not times.") : null,
        runs[0].head.machine.name !== runs[1].head.machine.name ? KP.el("p", {"class": "error"}, "These ran on different machines: compare speed-ups, not times.") : null,
        KP.el("figure", null, KP.el("figcaption", null, KP.el("b", null, "Progress"), "Solid: the first; dashed: the second."), KP.progressChart(runs)),
        KP.el("section", null, KP.el("div", {"class": "scroll"}, KP.el("table", {"class": "plain"}, KP.el("tbody", null,
          fact("task", function (head) { return head.task; }), fact("machine", function (head) { return head.machine.name; }),
          fact("proposer", function (head) { return head.proposer || ""; }), fact("state", function (head) { return head.state; }),
          fact("evaluations", function (head) { return String(head.evaluated); }), fact("run time", function (head) { return KP.seconds(head.run_seconds); }),
          fact("start", function (head, result) { return KP.us(result.baseline_us); }), fact("winner", function (head, result) { return KP.us(result.best_us); }),
          fact("of the ceiling", function (head, result) { return result.fraction_words || "\u2013"; }),
          fact("models", function (head) { return head.models || "none"; }), fact("stopped by", function (head) { return head.stopped_by || "\u2013"; }))))),
        KP.el("section", null, KP.el("h2", null, "The winners' difference"), KP.el("div", {id: "winners"})));
      document.documentElement.setAttribute("data-ready", "2");
      if (!runs[0].best || !runs[1].best) return;
      Promise.all([fetchJson("/run/" + a + "/candidate/" + runs[0].best), fetchJson("/run/" + b + "/candidate/" + runs[1].best)]).then(function (winners) {
        KP.replace(document.getElementById("winners"), winners[0].source === winners[1].source ? KP.el("p", {"class": "quiet"}, "The same source.")
          : KP.diffTable(KP.diffLines(winners[0].source, winners[1].source)));
      }, trouble);
    }, trouble);
    return {leave: function () { left = true; }};
  }

  function suitePage(id) {
    var left = false;
    drawBar(KP.el("span", null, "suite"));
    function load() {
      fetchJson("/suite/" + id).then(function (suite) {
        if (left) return;
        var arms = [], tasks = {};
        suite.runs.forEach(function (run) {
          var cut = run.name.indexOf("/"), arm = cut < 0 ? "" : run.name.slice(0, cut), task = run.name.slice(cut + 1);
          if (arms.indexOf(arm) < 0) arms.push(arm);
          (tasks[task] = tasks[task] || {})[arm] = run;
        });
        arms.sort();
        function cell(run) {
          if (!run) return "";
          return [KP.el("a", {href: "#/run/" + run.id}, run.pending ? "\u2026" : run.error ? "unreadable" : run.speedup ? KP.ratio(run.speedup) : "\u2013"),
                  KP.el("span", {"class": "quiet"}, isRunning(run) ? " running" : run.finished ? "" : " open")];
        }
        KP.replace(root, KP.el("header", null, KP.el("h1", null, suite.name), KP.el("p", {"class": "quiet"}, suite.path)),
          KP.table("plain", ["task"].concat(arms.map(function (arm) { return "#" + (arm || "speed-up"); })), Object.keys(tasks).sort().map(function (task) {
            return [task].concat(arms.map(function (arm) { return cell(tasks[task][arm]); }));
          })),
          !suite.measures ? KP.el("p", {"class": "note"}, "Measures follow when the suite ends or pauses (report.json).")
            : KP.el("section", null, KP.el("h2", null, "Measures"), measures(suite.measures)));
        document.documentElement.setAttribute("data-ready", String(suite.runs.length));
        if (suite.runs.some(function (run) { return run.pending; })) setTimeout(function () { if (!left) load(); }, 100);
      }, trouble);
    }
    function measures(list) {
      var names = Object.keys(list[0] || {}).filter(function (name) { return typeof list[0][name] !== "object"; });
      return KP.table("plain", names, list.map(function (row) {
        return names.map(function (name) { return typeof row[name] === "number" ? KP.digits(row[name]) : String(row[name]); });
      }));
    }
    var stop = listen(function () { return "/events"; }, load);
    return {leave: function () { left = true; stop(); }};
  }

  function route() {
    takeToken();
    var words = location.hash.replace(/^#\/?/, "").split("/");
    if (shown && shown.id && words[0] === "run" && words[1] === shown.id) {
      if (words[2]) shown.pick(Number(words[2]));
      return;
    }
    if (shown) shown.leave();
    document.title = "KernelPro";
    document.documentElement.removeAttribute("data-ready");
    window.scrollTo(0, 0);
    shown = words[0] === "run" && words[1] ? runPage(words[1], Number(words[2]))
      : words[0] === "compare" && words[2] ? comparePage(words[1], words[2])
      : words[0] === "suite" && words[1] ? suitePage(words[1]) : listPage();
  }
  window.addEventListener("hashchange", route);
  route();
})();
