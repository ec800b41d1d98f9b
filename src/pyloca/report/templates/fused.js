// The maps of all instruments of a fusion, in the same coordinates and the same frame: one point moves on all of them.
const data = JSON.parse(document.getElementById("data").textContent);
const canvases = data.instruments.map((_, i) => document.getElementById(`map-${i}`));
const pad = (point) => [point[0], point.length > 1 ? point[1] : 0];
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const every = data.instruments.flatMap(({ places }) => places.map(pad));
const low = [0, 1].map((j) => every.reduce((least, p) => Math.min(least, p[j]), Infinity));
const high = [0, 1].map((j) => every.reduce((most, p) => Math.max(most, p[j]), -Infinity));
const { width, height } = canvases[0];
const scale = Math.min((0.84 * width) / (high[0] - low[0] || 1), (0.84 * height) / (high[1] - low[1] || 1));
const middle = [0, 1].map((j) => (low[j] + high[j]) / 2);
const to = ([x, y]) => [width / 2 + scale * (x - middle[0]), height / 2 - scale * (y - middle[1])];
const from = ([x, y]) => [(x - width / 2) / scale + middle[0], (height / 2 - y) / scale + middle[1]];

let point = data.instruments[0].places[0].slice();

function nearest(places) {
  let best = 0;
  let least = Infinity;
  places.forEach((place, i) => {
    const apart = place.reduce((sum, x, j) => sum + (x - point[j]) ** 2, 0);
    if (apart < least) [best, least] = [i, apart];
  });
  return { row: best, apart: Math.sqrt(least) };
}

function draw() {
  const near = data.instruments.map(({ places }) => nearest(places));
  const been = data.instruments.map(({ reach }, i) => near[i].apart <= reach);
  data.instruments.forEach(({ places, errors }, i) => {
    const context = canvases[i].getContext("2d");
    context.clearRect(0, 0, width, height);
    context.fillStyle = colour("--dots");
    for (const place of places) {
      const [x, y] = to(pad(place));
      context.fillRect(x - 2.5, y - 2.5, 5, 5);
    }
    const [x, y] = to(pad(point));
    context.lineWidth = 3;
    if (been[i]) {
      context.strokeStyle = colour("--ring");
      context.beginPath();
      context.arc(x, y, 2.45 * errors[near[i].row] * scale, 0, 2 * Math.PI); // 95 % in a plane
      context.stroke();
    }
    context.fillStyle = context.strokeStyle = colour("--point");
    context.beginPath();
    context.arc(x, y, 11, 0, 2 * Math.PI);
    if (been[i]) context.fill();
    else context.stroke();
  });
  const format = (z) => z.map((x) => x.toPrecision(4)).join(", ");
  const names = data.instruments.filter((_, i) => been[i]).map(({ name }) => name);
  const seen = names.length ? `Seen by ${names.join(", ")}.` : "No instrument has been there.";
  document.getElementById("told").textContent = `${format(point)}. ${seen}`;
  const body = document.getElementById("sensors");
  body.replaceChildren();
  data.instruments.forEach(({ name, sensors, readings, more }, i) => {
    if (!been[i]) return;
    sensors.forEach((sensor, j) => {
      const row = body.insertRow();
      const left = j === 0 ? name + (more ? ` (the first ${sensors.length} sensors)` : "") : "";
      for (const [k, text] of [left, sensor, readings[near[i].row][j].toPrecision(5)].entries()) {
        const cell = row.insertCell();
        cell.textContent = text;
        if (k === 2) cell.className = "number";
      }
    });
  });
}

function place(flat) {
  for (let j = 0; j < Math.min(2, point.length); j += 1) point[j] = flat[j];
  draw();
}

canvases.forEach((canvas) => {
  const follow = (event) => {
    const box = canvas.getBoundingClientRect();
    place(from([((event.clientX - box.left) / box.width) * width, ((event.clientY - box.top) / box.height) * height]));
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    follow(event);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (event.buttons) follow(event);
  });
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (!step) return;
    event.preventDefault();
    const length = (event.shiftKey ? 40 : 4) / scale;
    const here = pad(point);
    place([here[0] + length * step[0], here[1] + length * step[1]]);
  });
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
draw();
