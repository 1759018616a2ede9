"use strict";
(() => {
  const pictures = JSON.parse(document.getElementById("charts").textContent);
  const charts = [];
  const colour = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

  // Tables: a button in the head sorts the rows; numbers by data-v, which has all digits.
  const value = cell => (cell.classList.contains("n") ? Number(cell.dataset.v ?? cell.textContent) : cell.textContent);
  const order = (a, b) => (typeof a === "number" ? (isNaN(a) ? 1 : isNaN(b) ? -1 : a - b) : a.localeCompare(b));
  for (const button of document.querySelectorAll("th button")) {
    button.addEventListener("click", () => {
      const head = button.parentElement, body = head.closest("table").tBodies[0];
      const down = head.getAttribute("aria-sort") === "ascending", place = head.cellIndex;
      for (const other of head.parentElement.children) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...body.rows].map(row => [value(row.cells[place]), row]);
      rows.sort((a, b) => (down ? order(b[0], a[0]) : order(a[0], b[0])));
      body.append(...rows.map(row => row[1]));
    });
  }

  function reading(chart, point) {
    const series = chart.picture.series[point.datasetIndex], k = point.index;
    if (series.notes[k]) return series.notes[k];
    if (chart.picture.names.length) return `${chart.picture.names[k]}: ${series.low.length ? series.low[k] + " to " : ""}${series.y[k]}`;
    return `${chart.picture.x} ${shown(chart.picture, "x", series.x[k])}, ${chart.picture.y} ${shown(chart.picture, "y", series.y[k])}`;
  }

  // Times are seconds since 1970 on a linear axis, with ticks at round times.
  const MINUTE = 60, HOUR = 3600, DAY = 86400, MONTH = 30.4 * DAY, YEAR = 365.25 * DAY;
  const STEPS = [1, 2, 5, 10, 15, 30].flatMap(n => [n, n * MINUTE]).concat([1, 2, 3, 6, 12].map(n => n * HOUR),
    [1, 2, 4, 7, 14].map(n => n * DAY), [1, 2, 3, 6].map(n => n * MONTH)).sort((a, b) => a - b);
  const power = (x, unit) => {
    const ten = 10 ** Math.floor(Math.log10(x / unit));
    return [1, 2, 5, 10].map(n => n * ten * unit).find(step => step >= x * (1 - 1e-9));
  };
  const iso = seconds => {
    const moment = new Date(Math.round(seconds * 1000));
    return isNaN(moment) ? ["", ""] : moment.toISOString().split(/[TZ]/);
  };
  const shown = (picture, axis, value) => {
    if (!picture.times.includes(axis)) return value;
    const [day, clock] = iso(value);
    return `${day} ${clock.replace(/\.000$/, "")}`.replace(/ 00:00:00$/, "");
  };

  function timeTicks(low, high, most) {
    const least = (high - low) / most;
    const step = least <= 0 ? DAY : least < 0.5 ? power(least, 1) : STEPS.find(one => one >= least) ?? power(least, YEAR);
    const ticks = [];
    if (step < MONTH) {
      for (let at = Math.ceil(low / step) * step; at <= high && ticks.length < 100; at += step) ticks.push(at);
    } else {
      const months = Math.round(step / MONTH) < 12 ? Math.round(step / MONTH) : 12 * Math.round(step / YEAR);
      const start = new Date(low * 1000), first = start.getUTCFullYear() * 12 + start.getUTCMonth();
      for (let m = Math.floor(first / months) * months; ticks.length < 100; m += months) {
        const day = new Date(0);
        day.setUTCFullYear(Math.floor(m / 12), m - 12 * Math.floor(m / 12), 1);
        if (!(day / 1000 <= high)) break;
        if (day / 1000 >= low) ticks.push(day / 1000);
      }
    }
    return ticks.map((at, k) => {
      const [day, clock] = iso(at);
      if (step >= MONTH) return { value: at, label: step >= YEAR * 0.99 ? day.replace(/-\d\d-\d\d$/, "") : day.slice(0, -3) };
      if (step >= DAY) return { value: at, label: day };
      const short = clock.slice(0, step >= MINUTE ? 5 : step >= 1 ? 8 : 12);
      return { value: at, label: k === 0 || at % DAY === 0 ? [short, day] : short };
    });
  }

  function dataset(series, picture) {
    const c = colour(series.colour), bars = picture.names.length > 0;
    const points = bars ? (series.low.length ? series.y.map((y, k) => [series.low[k], y]) : series.y)
      : series.x.map((x, k) => ({ x, y: series.y[k] }));
    const out = { label: series.name, data: points, borderColor: c, backgroundColor: c, order: 0 };
    if (series.style === "pairs") return { ...out, type: "bar", backgroundColor: c + "cc", order: 1 };
    if (series.style === "bars" || series.style === "ranges") {
      return { ...out, type: "bar", grouped: false, barPercentage: series.style === "ranges" ? 0.35 : 0.7,
        backgroundColor: c + (series.style === "ranges" ? "88" : "cc"), order: 1 };
    }
    if (series.style === "crosses") {
      return { ...out, type: "scatter", showLine: false, pointStyle: "crossRot", pointRadius: 5, borderWidth: 1.5, order: -1 };
    }
    if (series.style === "dots") {
      const size = bars ? 6 : series.strong ? 4.5 : 2.5;
      const away = k => series.beyond.length && series.beyond[k] >= 0;
      return { ...out, type: bars ? "line" : "scatter", showLine: false, borderWidth: series.strong ? 1.5 : 0, clip: 12,
        backgroundColor: c + (series.strong ? "66" : "77"), pointRadius: points.map((_, k) => (away(k) ? size + 2 : size)),
        pointHoverRadius: size + 3, pointStyle: points.map((_, k) => (away(k) ? "triangle" : "circle")),
        rotation: points.map((_, k) => (away(k) ? series.beyond[k] : 0)), pointHitRadius: 4 };
    }
    const steps = series.style === "steps";
    return { ...out, type: "line", pointStyle: "line", borderWidth: series.strong ? 2 : 1.3, pointRadius: 0, pointHitRadius: 6, tension: 0,
      borderDash: series.dashed ? [6, 4] : [], stepped: steps ? "before" : false, fill: steps ? "origin" : false,
      backgroundColor: c + "30", spanGaps: false };
  }

  const verticals = {
    id: "verticals",
    beforeDatasetsDraw(chart) {
      const { ctx, chartArea, scales } = chart;
      ctx.save();
      ctx.fillStyle = colour("vermillion") + "26";
      for (const band of chart.picture.bands) {
        const [from, to] = band.map(place => Math.min(Math.max(scales.x.getPixelForValue(place), chartArea.left), chartArea.right));
        ctx.fillRect(from, chartArea.top, to - from, chartArea.bottom - chartArea.top);
      }
      // Below the curves, so that they hide no peak.
      ctx.strokeStyle = colour("vermillion");
      ctx.lineWidth = 1.5;
      for (const [place] of chart.picture.lines) {
        const x = scales.x.getPixelForValue(place);
        if (x < chartArea.left || x > chartArea.right) continue;
        ctx.beginPath();
        ctx.moveTo(x, chartArea.top);
        ctx.lineTo(x, chartArea.bottom);
        ctx.stroke();
      }
      ctx.restore();
    },
  };

  // Short texts beside the first dots of a series, such as ranks, and beside bars.
  const texts = {
    id: "texts",
    afterDatasetsDraw(chart) {
      const { ctx, chartArea } = chart, bars = chart.picture.names.length > 0;
      ctx.save();
      ctx.font = "11px system-ui, sans-serif";
      chart.picture.series.forEach((series, i) => {
        const meta = chart.getDatasetMeta(i), taken = [];
        ctx.fillStyle = colour(bars ? "text" : series.colour);
        if (meta.hidden) return;
        series.labels.forEach((text, k) => {
          const { x, y } = meta.data[k];
          if (x < chartArea.left - 1 || x > chartArea.right + 1 || y < chartArea.top - 1 || y > chartArea.bottom + 1) return;
          if (taken.some(([a, b]) => Math.abs(a - x) < 14 && Math.abs(b - y) < 12)) return;
          taken.push([x, y]);
          const left = x > (chartArea.left + chartArea.right) / 2;
          ctx.textAlign = left ? "right" : "left";
          ctx.fillText(text, x + (left ? -6 : 6), bars ? y + 4 : y - 5);
        });
      });
      ctx.restore();
    },
  };

  // The frame is a little larger than the data; where the reader has zoomed, it is as chosen.
  function widen(scale) {
    const margin = 0.03 * (scale.max - scale.min || 1), { min, max } = scale.options;
    if (min === undefined) scale.min -= margin;
    if (max === undefined) scale.max += margin;
  }

  const room = scale => Math.max(2, scale.axis === "x" ? scale.chart.width / 110 : scale.chart.height / 60);

  function roundTicks(scale) {
    const { min, max } = scale, step = max > min ? power((max - min) / room(scale), 1) : 1;
    scale.ticks = [];
    for (let k = Math.ceil(min / step); k * step <= max; k++) scale.ticks.push({ value: Number((k * step).toPrecision(12)) });
  }

  function axis(label, log, times) {
    const out = { type: log ? "logarithmic" : "linear", title: { display: label !== "", text: label, color: colour("text") },
      ticks: { color: colour("quiet"), maxRotation: 0, autoSkipPadding: 12 }, grid: { color: colour("grid") },
      border: { color: colour("line") } };
    if (log) return out;
    Object.assign(out, { bounds: "data", afterDataLimits: widen, afterBuildTicks: roundTicks });
    if (!times) return out;
    out.ticks = { ...out.ticks, autoSkip: false, callback: (_, k, ticks) => ticks[k].words };
    out.afterBuildTicks = scale => {
      scale.ticks = timeTicks(scale.min, scale.max, room(scale)).map(tick => ({ value: tick.value, words: tick.label }));
    };
    return out;
  }

  // A row beyond the frame is drawn as a triangle; the legend shows a dot all the same.
  function labels(chart) {
    const found = Chart.defaults.plugins.legend.labels.generateLabels(chart);
    return found.map(item => (item.pointStyle === "triangle" ? { ...item, pointStyle: "circle", rotation: 0 } : item));
  }

  function options(picture) {
    const bars = picture.names.length > 0, shares = picture.series.some(s => s.style === "steps"), mode = bars ? "x" : "xy";
    const limits = { min: "original", max: "original" };
    return {
      animation: false, responsive: true, maintainAspectRatio: false, indexAxis: bars ? "y" : "x",
      interaction: { mode: "nearest", intersect: true },
      scales: { x: { ...axis(picture.x, picture.log, picture.times.includes("x")), ...(bars ? { min: 0, bounds: "ticks" } : {}) },
        y: bars ? { ...axis(picture.y, true), type: "category", ticks: { color: colour("text"), autoSkip: false } }
          : { ...axis(picture.y, false, picture.times.includes("y")), min: shares ? 0 : undefined } },
      plugins: {
        legend: { display: picture.series.filter(s => s.name).length > 1, align: "start",
          labels: { color: colour("text"), usePointStyle: true, boxHeight: 7, filter: item => item.text !== "", generateLabels: labels } },
        tooltip: { displayColors: false, callbacks: { title: () => "", label: item => reading(item.chart, item).split("\n") } },
        zoom: { limits: bars ? { x: limits } : { x: limits, y: limits },
          pan: { enabled: true, mode, modifierKey: "shift" },
          zoom: { mode, wheel: { enabled: true, modifierKey: "ctrl" }, drag: { enabled: true, backgroundColor: colour("blue") + "33" } } },
      },
      onHover: (_, points, chart) => { if (points.length) say(chart, points[0]); },
    };
  }

  const say = (chart, point) => { chart.words.textContent = reading(chart, point); };

  function draw(canvas, picture) {
    const data = { labels: picture.names.length ? picture.names : undefined, datasets: picture.series.map(s => dataset(s, picture)) };
    const plugin = { id: "picture", beforeInit(chart) { chart.picture = picture; } };
    const chart = new Chart(canvas, { type: picture.names.length ? "bar" : "scatter", data, options: options(picture), plugins: [plugin, verticals, texts] });
    const section = canvas.closest("section");
    chart.words = section.querySelector(".reading");
    chart.words.textContent = "Drag over a part of the picture to enlarge it. Arrow keys step from point to point.";
    return chart;
  }

  // Keys reach the points that have a text: those of the last series, which are drawn on top, first.
  function stops(picture) {
    const told = (s, k) => picture.names.length || s.notes[k];
    return picture.series.map((s, i) => s.y.map((_, k) => k).filter(k => told(s, k)).map(k => ({ datasetIndex: i, index: k })))
      .reverse().flat();
  }

  function listen(canvas, number) {
    let at = -1;
    canvas.addEventListener("keydown", event => {
      const chart = charts[number], step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (event.key === "+" || event.key === "-") chart.zoom(event.key === "+" ? 1.4 : 0.7);
      else if (event.key === "Escape") chart.resetZoom();
      else if (step) {
        const all = stops(chart.picture);
        if (!all.length) return;
        at = (at + step + all.length) % all.length;
        const { x, y } = chart.getDatasetMeta(all[at].datasetIndex).data[all[at].index];
        chart.setActiveElements([all[at]]);
        chart.tooltip.setActiveElements([all[at]], { x, y });
        chart.update();
        say(chart, all[at]);
      } else return;
      event.preventDefault();
    });
    for (const button of canvas.closest("section").querySelectorAll("[data-zoom]")) {
      button.addEventListener("click", () => {
        const by = Number(button.dataset.zoom);
        if (by) charts[number].zoom(by); else charts[number].resetZoom();
      });
    }
  }

  const canvases = [...document.querySelectorAll("canvas")];
  function redraw() {
    Chart.defaults.font.family = "system-ui, sans-serif";
    canvases.forEach((canvas, k) => {
      charts[k]?.destroy();
      charts[k] = draw(canvas, pictures[k]);
    });
  }

  const system = matchMedia("(prefers-color-scheme: dark)"), button = document.getElementById("theme");
  const root = document.documentElement;
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const label = () => { button.textContent = dark() ? "Light colours" : "Dark colours"; };
  button.hidden = false;
  button.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; label(); redraw(); });
  system.addEventListener("change", () => { label(); redraw(); });
  // Paper is white, whatever the screen is.
  let chosen;
  addEventListener("beforeprint", () => {
    chosen = root.dataset.theme;
    root.dataset.theme = "light";
    redraw();
    charts.forEach(chart => chart.resize(680, chart.height));
  });
  addEventListener("afterprint", () => {
    if (chosen) root.dataset.theme = chosen; else delete root.dataset.theme;
    redraw();
  });
  label();
  redraw();
  canvases.forEach(listen);
  window.reportCharts = charts;
})();
