// Two maps that show the same state. The rigid map moves the point; near a burst the page adds what its prediction
// differs from the rigid map by, as that difference is smooth.
const data = JSON.parse(document.getElementById("data").textContent);
const canvases = [0, 1].map((i) => document.getElementById(`map-${i}`));
const chooser = document.getElementById("candidate");
const pad = (point) => [point[0], point.length > 1 ? point[1] : 0];
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

let candidate = data.chosen === null ? 0 : data.chosen;
let active = 0;
let point = data.sides[0].places[0].slice();

function forward(map, z) {
  return map.shift.map((t, j) => t + map.scale * z.reduce((sum, x, i) => sum + x * map.rotation[i][j], 0));
}

function backward(map, z) {
  return z.map((_, i) => z.reduce((sum, x, j) => sum + (x - map.shift[j]) * map.rotation[i][j], 0) / map.scale);
}

function across(side, z) {
  return side === 0 ? forward(data.maps[candidate], z) : backward(data.maps[candidate], z);
}

function nearest(places, z) {
  let best = 0;
  let least = Infinity;
  places.forEach((place, i) => {
    const apart = place.reduce((sum, x, j) => sum + (x - z[j]) ** 2, 0);
    if (apart < least) [best, least] = [i, apart];
  });
  return best;
}

const frames = data.sides.map(({ places }, i) => {
  const flat = places.map(pad);
  const low = [0, 1].map((j) => Math.min(...flat.map((p) => p[j])));
  const high = [0, 1].map((j) => Math.max(...flat.map((p) => p[j])));
  const { width, height } = canvases[i];
  const scale = Math.min((0.84 * width) / (high[0] - low[0] || 1), (0.84 * height) / (high[1] - low[1] || 1));
  const middle = [0, 1].map((j) => (low[j] + high[j]) / 2);
  return {
    scale,
    to: ([x, y]) => [width / 2 + scale * (x - middle[0]), height / 2 - scale * (y - middle[1])],
    from: ([x, y]) => [(x - width / 2) / scale + middle[0], (height / 2 - y) / scale + middle[1]],
  };
});

function state() {
  const places = data.sides[active].places;
  const near = nearest(places, point);
  let other = across(active, point);
  const told = data.sides[active].predicted;
  let radius = 0;
  if (told && candidate === data.chosen) {
    const rigid = across(active, places[near]);
    other = other.map((x, j) => x + told.coordinates[near][j] - rigid[j]);
    radius = told.radius[near];
  }
  return { near, other, told: candidate === data.chosen ? told : null, radius };
}

function draw() {
  const now = state();
  [active, 1 - active].forEach((side, k) => {
    const canvas = canvases[side];
    const context = canvas.getContext("2d");
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.fillStyle = colour("--dots");
    for (const place of data.sides[side].places) {
      const [x, y] = frames[side].to(pad(place));
      context.fillRect(x - 2.5, y - 2.5, 5, 5);
    }
    if (k === 1 && !data.linked) return; // no candidate is possible: nobody knows where the point is on the other map
    const at = frames[side].to(pad(k === 0 ? point : now.other));
    if (k === 1 && now.radius) {
      context.strokeStyle = colour("--ring");
      context.lineWidth = 3;
      context.beginPath();
      context.arc(at[0], at[1], now.radius * frames[side].scale, 0, 2 * Math.PI);
      context.stroke();
    }
    context.fillStyle = colour("--point");
    context.beginPath();
    context.arc(at[0], at[1], 11, 0, 2 * Math.PI);
    context.fill();
  });
  const names = [...document.querySelectorAll("figcaption")].map((caption) => caption.textContent);
  const format = (z) => z.map((x) => x.toPrecision(4)).join(", ");
  let words = `${names[active]}: ${format(point)}.`;
  if (data.linked) words += ` ${names[1 - active]}: ${format(now.other)}.`;
  const body = document.getElementById("sensors");
  body.replaceChildren();
  document.querySelector(".table").hidden = !now.told;
  document.getElementById("caption").textContent = "";
  if (now.told) {
    const trust = now.told.trust[now.near];
    words += trust < 0.01 ? " Not to be trusted: one of them has not been there." : ` Trust ${trust.toPrecision(2)}.`;
    const more = now.told.more ? ` (the first ${now.told.sensors.length} sensors)` : "";
    document.getElementById("caption").textContent = `Readings of ${names[1 - active]} at the nearest burst${more}`;
    now.told.sensors.forEach((sensor, i) => {
      const row = body.insertRow();
      for (const [j, text] of [sensor, now.told.values[now.near][i].toPrecision(5), now.told.errors[now.near][i].toPrecision(2)].entries()) {
        const cell = row.insertCell();
        cell.textContent = text;
        if (j) cell.className = "number";
      }
    });
  } else {
    words += data.linked ? " No candidate is chosen by the evidence: readings are not predicted." : " The instruments are not matched.";
  }
  document.getElementById("told").textContent = words;
}

function place(side, flat) {
  const full = data.sides[side].places[0].length;
  if (side !== active) {
    point = data.linked ? state().other : data.sides[side].places[0].slice();
    active = side;
  }
  const start = point.slice();
  for (let j = 0; j < Math.min(2, full); j += 1) start[j] = flat[j];
  point = start;
  draw();
}

canvases.forEach((canvas, side) => {
  const follow = (event) => {
    const box = canvas.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * canvas.width;
    const y = ((event.clientY - box.top) / box.height) * canvas.height;
    place(side, frames[side].from([x, y]));
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
    const length = (event.shiftKey ? 40 : 4) / frames[side].scale;
    const here = pad(side === active ? point : data.linked ? state().other : data.sides[side].places[0]);
    place(side, [here[0] + length * step[0], here[1] + length * step[1]]);
  });
});
if (chooser) {
  chooser.addEventListener("change", () => {
    candidate = Number(chooser.value);
    draw();
  });
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
draw();
