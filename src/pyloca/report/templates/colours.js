// Colours of the dots: by a sensor, a figure of the fit, or one of the user's columns.
const VIRIDIS = ["440154", "472d7b", "3b528b", "2c728e", "21918c", "28ae80", "5ec962", "addc30", "fde725"];
// Okabe and Ito: distinguishable with every kind of colour vision.
const LEVELS = ["#0072b2", "#e69f00", "#cc79a7", "#56b4e9", "#009e73", "#d55e00", "#b8a900"];
const PART = 0.01; // of the values at each end share the last colour, so that a few do not take them all

/** A colour for `part` from 0 to 1. Both ends stand out from the paper, light or dark. */
function shade(part) {
  const dark = window.matchMedia("(prefers-color-scheme: dark)").matches;
  const [from, to] = dark ? [0.25, 1] : [0, 0.9];
  const place = (from + (to - from) * Math.max(0, Math.min(1, part))) * (VIRIDIS.length - 1);
  const left = Math.min(VIRIDIS.length - 2, Math.floor(place));
  const mixed = [0, 2, 4].map((at) => {
    const [a, b] = [left, left + 1].map((i) => parseInt(VIRIDIS[i].slice(at, at + 2), 16));
    return Math.round(a + (b - a) * (place - left));
  });
  return `rgb(${mixed.join()})`;
}

/** The legend of a scale from `low` to `high`. */
function drawGradient(parent, low, high, log) {
  const step = 10 ** (Math.floor(Math.log10(high > low ? high - low : Math.abs(low) || 1)) - 2);
  const rounded = (value) => number(log ? Number(value.toPrecision(2)) : Math.round(value / step) * step);
  make("span", parent, { textContent: rounded(low) });
  const bar = make("canvas", parent, { width: 160, height: 12 }, { role: "img", "aria-label": "to" });
  const context = bar.getContext("2d");
  for (let x = 0; x < bar.width; x++) {
    context.fillStyle = shade(x / (bar.width - 1));
    context.fillRect(x, 0, 1, bar.height);
  }
  make("span", parent, { textContent: rounded(high) });
}

function drawLevel(parent, words, fill) {
  const item = make("span", parent, { className: "level" });
  make("i", item, {}, { "aria-hidden": "true" }).style.background = fill;
  item.append(words);
}

/** Numbers as colours: `paint(i)`, `words(i)` and the legend. */
function paintNumbers(name, values, log) {
  const usable = Array.from(values).filter((value) => Number.isFinite(value) && (!log || value > 0));
  usable.sort((a, b) => a - b);
  const last = usable.length - 1;
  const [low, high] = [usable[Math.round(PART * last)], usable[Math.round((1 - PART) * last)]];
  const axis = log ? Math.log : (value) => value;
  const missing = values.filter((value) => Number.isNaN(value)).length;
  return {
    paint: (i) =>
      Number.isNaN(values[i])
        ? colour("line")
        : shade(high > low ? (axis(Math.max(values[i], log ? low : -Infinity)) - axis(low)) / (axis(high) - axis(low)) : 0.5),
    words: (i) => `${name}: ${Number.isNaN(values[i]) ? "no value" : number(values[i])}`,
    legend: (parent) => {
      if (usable.length) drawGradient(parent, low, high, log);
      if (missing) drawLevel(parent, `no value (${missing})`, colour("line"));
    },
  };
}

/** Texts as colours, the most frequent ones; the rest share one. */
function paintLevels(name, levels, codes) {
  const counts = levels.map(() => 0);
  for (const code of codes) counts[code] += 1;
  const named = levels.map((_, code) => code).filter((code) => levels[code] !== "");
  const kept = named.slice().sort((a, b) => counts[b] - counts[a]).slice(0, LEVELS.length);
  kept.sort((a, b) => a - b); // in the order of the alphabet
  const fill = (code) => {
    if (levels[code] === "") return colour("line");
    return kept.includes(code) ? LEVELS[kept.indexOf(code)] : colour("dots");
  };
  return {
    paint: (i) => fill(codes[i]),
    words: (i) => `${name}: ${levels[codes[i]] || "no value"}`,
    legend: (parent) => {
      for (const code of kept) drawLevel(parent, `${levels[code]} (${counts[code]})`, fill(code));
      const sum = (total, code) => total + counts[code];
      const rest = named.filter((code) => !kept.includes(code));
      if (rest.length) drawLevel(parent, `${rest.length} others (${rest.reduce(sum, 0)})`, colour("dots"));
      const missing = levels.indexOf("");
      if (missing >= 0) drawLevel(parent, `no value (${counts[missing]})`, colour("line"));
    },
  };
}

/** Everything that the dots of an explorer can be coloured by: {group, name, make()}. */
function colourings(explorer) {
  const { data, names, points } = explorer;
  const found = [];
  if (data.sensors) {
    const means = data.means && unpackRows(data.means);
    names.forEach((name, i) => {
      const shown = means ? name : `${name} (decoded)`;
      const values = () => (means || points.map(explorer.decode)).map((y) => y[i]);
      found.push({ group: "sensors", name: shown, make: () => paintNumbers(shown, values(), false) });
    });
  }
  for (const stored of data.colours) {
    const { group, name, levels, codes, log } = stored;
    const make = levels
      ? () => paintLevels(name, levels, codes)
      : () => paintNumbers(name, Array.from(unpack(stored.values)), log);
    found.push({ group, name, make });
  }
  return found;
}

/** A menu of them, and below it the legend; `update` is called when another one is chosen. */
function addColourMenu(parent, explorer, update) {
  const choices = colourings(explorer);
  if (!choices.length) return;
  const controls = make("div", parent, { className: "controls" });
  const picker = make("select", make("label", controls, { textContent: "colour by" }), { className: "colour-by" });
  make("option", picker, { value: "", textContent: "one colour" });
  const groups = {};
  choices.forEach(({ group, name }, i) => {
    groups[group] = groups[group] || make("optgroup", picker, { label: group });
    make("option", groups[group], { value: i, textContent: name });
  });
  const legend = make("div", parent, { className: "scale", hidden: true });
  const show = () => {
    legend.replaceChildren();
    legend.hidden = !explorer.colouring;
    if (explorer.colouring) explorer.colouring.legend(legend);
  };
  picker.addEventListener("change", () => {
    explorer.colouring = picker.value === "" ? null : choices[picker.value].make();
    explorer.chosen = picker.value;
    show();
    update();
  });
  explorer.showLegend = show; // again, when the colours of the page change
}
