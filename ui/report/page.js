"use strict";
(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const NARROW = 640, WRAP = 22;

  const inked = () => {
    const { color: ink, fontFamily } = getComputedStyle(document.body);
    const grid = "rgba(127,127,127,0.28)";
    const axes = {};
    for (const axis of ["xaxis", "yaxis"]) {
      axes[`${axis}.gridcolor`] = grid;
      axes[`${axis}.linecolor`] = grid;
    }
    return { "font.color": ink, "font.family": fontFamily, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", ...axes };
  };

  const wrapped = (text) => {
    const lines = [""];
    for (const word of text.split(" ")) {
      const last = lines.length - 1;
      if (lines[last] && lines[last].length + word.length > WRAP) lines.push(word);
      else lines[last] += (lines[last] ? " " : "") + word;
    }
    return lines.join("<br>");
  };

  const draw = (element) => {
    const given = JSON.parse(element.querySelector("script").textContent);
    const plot = element.querySelector(".plot");
    element.dataset.drawn = "yes";
    if (plot.clientWidth < NARROW) {
      given.layout.font = { ...given.layout.font, size: 11 };
      given.layout.margin = { ...given.layout.margin, l: 10, r: 10 };
      const rows = given.layout.yaxis.type === "category" ? given.data[0].y : null;
      if (rows) Object.assign(given.layout.yaxis, { tickmode: "array", tickvals: rows, ticktext: rows.map(wrapped) });
    }
    Plotly.newPlot(plot, given.data, given.layout, { responsive: true, displaylogo: false })
      .then(() => Plotly.relayout(plot, inked()));
  };

  const waiting = (within) => [...within.querySelectorAll("figure:not([data-drawn])")];
  const hidden = (element) => element.closest("details:not([open])") !== null;
  const drawSeen = (within) => waiting(within).filter((one) => !hidden(one)).forEach(draw);

  drawSeen(document);
  document.addEventListener("toggle", (event) => drawSeen(event.target), true);
  const again = () => document.querySelectorAll("figure[data-drawn] .plot").forEach((one) => Plotly.relayout(one, inked()));
  dark.addEventListener("change", again);
  window.addEventListener("beforeprint", () => {
    document.querySelectorAll("details").forEach((one) => { one.open = true; });
    drawSeen(document);
    again();
  });
  const opened = () => {
    const at = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let up = at; up; up = up.parentElement) if (up.tagName === "DETAILS") up.open = true;
    if (at) at.scrollIntoView();
  };
  window.addEventListener("hashchange", opened);
  opened();
})();
