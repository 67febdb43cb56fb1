"use strict";
(() => {
  const found = JSON.parse(document.getElementById("charts").textContent);
  const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

  const formatted = (digits) => {
    const format = new Intl.NumberFormat("en-GB", {
      minimumFractionDigits: digits, maximumFractionDigits: digits,
    });
    return (value) => format.format(value).replace("-", "\u2212");
  };

  const moment = (millis) => {
    const at = new Date(millis);
    const day = `${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]} ${at.getUTCFullYear()}`;
    const time = at.toISOString().slice(11, 16);
    return time === "00:00" ? day : `${day}, ${time}`;
  };

  // What stands beside the pointer; a text, never HTML.
  const told = (row, text) => {
    const lines = [];
    if ("s" in row && "q" in row) {
      lines.push(`About ${row.t}, published ${row.q}`, text(row.v));
      lines.push(`change ${row.d > 0 ? "+" : ""}${text(row.d)}, ${row.e ? "beyond" : "within"} the noise`);
      return lines.join("\n");
    }
    if (row.k !== undefined) lines.push(row.k);
    if (typeof row.t === "number") lines.push(`${moment(row.t)}, round ${row.r}`);
    if ("xl" in row) {
      lines.push(`${text(row.x)} (${text(row.xl)} to ${text(row.xh)})`);
      lines.push(`${text(row.y)} (${text(row.yl)} to ${text(row.yh)})`);
      if (row.s) lines.push(row.s);
      return lines.join("\n");
    }
    if (row.x !== undefined) lines.push(`up to ${row.x}`);
    if (row.v !== null && row.v !== undefined && row.q !== 1) lines.push(text(row.v));
    if (row.l !== null && row.l !== undefined) lines.push(`${text(row.l)} to ${text(row.h)}`);
    if (row.a !== null && row.a !== undefined) lines.push(`all rounds at once: ${text(row.a)} to ${text(row.b)}`);
    return lines.join("\n");
  };

  const rowsOf = (columns, text) => {
    const names = Object.keys(columns);
    const length = names.length ? columns[names[0]].length : 0;
    return Array.from({ length }, (_, place) => {
      const row = {};
      for (const name of names) row[name] = columns[name][place];
      row.tip = told(row, text);
      return row;
    });
  };

  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true");
  document.body.append(tip);

  const point = (_handler, event, _item, value) => {
    if (value === null || value === undefined || value === "") {
      tip.hidden = true;
      return;
    }
    tip.textContent = String(value);
    tip.hidden = false;
    const room = document.documentElement.clientWidth;
    const left = Math.min(event.clientX + 14, room - tip.offsetWidth - 8);
    const below = event.clientY + 16 + tip.offsetHeight < window.innerHeight;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${below ? event.clientY + 16 : event.clientY - tip.offsetHeight - 10}px`;
  };

  const heightOf = (chart, holder) =>
    chart.ratio ? Math.max(200, (holder.clientWidth - 60) * chart.ratio) : chart.spec.height;

  const draw = (holder) => {
    if (holder.dataset.drawn) return;
    holder.dataset.drawn = "1";
    const chart = found.charts[Number(holder.dataset.chart)];
    const text = formatted(chart.digits);
    const datasets = {};
    for (const [name, columns] of Object.entries(chart.data)) datasets[name] = rowsOf(columns, text);
    const spec = { ...chart.spec, height: heightOf(chart, holder), datasets };
    const compiled = vegaLite.compile(spec, { config: found.config }).spec;
    const runtime = vega.parse(compiled, {}, { ast: true });
    const view = new vega.View(runtime, {
      expr: vega.expressionInterpreter,
      renderer: "svg",
      container: holder,
      hover: false,
      tooltip: point,
      logLevel: vega.Error,
    });
    view.run();
    holder.style.minHeight = "";
    const svg = holder.querySelector("svg");
    svg.setAttribute("aria-hidden", "true");
    svg.setAttribute("focusable", "false");
  };

  const holders = Array.from(document.querySelectorAll("[data-chart]"));
  document.documentElement.classList.add("drawing");
  // Room is kept, so that nothing jumps when a chart is drawn.
  for (const holder of holders) {
    const chart = found.charts[Number(holder.dataset.chart)];
    holder.style.minHeight = `${heightOf(chart, holder) + 30}px`;
  }
  const all = () => holders.forEach(draw);
  window.addEventListener("beforeprint", all);
  if ("IntersectionObserver" in window) {
    const seen = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        if (entry.isIntersecting) {
          draw(entry.target);
          seen.unobserve(entry.target);
        }
      }
    }, { rootMargin: "800px" });
    holders.forEach((holder) => seen.observe(holder));
  } else {
    all();
  }

  const copy = document.getElementById("copy");
  const said = document.getElementById("copied");
  const citation = document.getElementById("citation");
  copy.hidden = false;
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(citation.textContent);
      said.textContent = "Copied.";
    } catch {
      window.getSelection().selectAllChildren(citation);
      said.textContent = "The text is selected; copy it now.";
    }
  });
})();
