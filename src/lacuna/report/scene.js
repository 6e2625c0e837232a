// --- the world on a canvas --------------------------------------------------------------------------------------------

const root = document.documentElement;
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);

let inks = null;
function colours() {
  if (inks) return inks;
  const style = getComputedStyle(root);
  const dark = isDark();
  const names = ["ink", "paper", "soft", "line", "guess", "guess-deep", "truth", "truth-rim", "fog"];
  inks = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  inks.dark = dark;
  return inks;
}
const themed = new Set();
function redrawAll() {
  inks = null;
  for (const redraw of themed) redraw();
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);

const ease = (x) => (x < 0.5 ? 2 * x * x : 1 - (2 - 2 * x) ** 2 / 2);
const between = (a, b, f) => [a[0] + (b[0] - a[0]) * f, a[1] + (b[1] - a[1]) * f];

class Scene {
  constructor(recording, canvas) {
    this.recording = recording;
    this.canvas = canvas;
    this.map = recording.world.map;
    this.kept = new Map();
  }
  // How high the picture is when it is this wide.
  height(width) {
    if (this.map) return Math.round((width * this.map.rows) / this.map.columns);
    return this.recording.world.components.length * Math.min(92, Math.max(64, width / 6)) + 12;
  }
  size(width) {
    const ratio = Math.min(devicePixelRatio || 1, 2), height = this.height(width);
    if (this.width === width && this.ratio === ratio) return;
    Object.assign(this, { width, ratio, tall: height });
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.height = `${height}px`;
    this.kept.clear();
  }
  draw(a, b, f, shown) {
    const pen = this.canvas.getContext("2d");
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    pen.clearRect(0, 0, this.width, this.tall);
    if (this.map) this.#drawMap(pen, a, b, f, shown);
    else this.#drawStrips(pen, a, b, f, shown);
  }

  // --- maps ---

  cellOf(state) {
    const { row, column } = this.map;
    return [row < 0 ? 0 : this.recording.value(state, row), this.recording.value(state, column)];
  }
  middle([row, column]) {
    const side = this.width / this.map.columns;
    return [(column + 0.5) * side, (row + 0.5) * side];
  }
  #ground(scene) {
    const key = `${scene}-${colours().dark}`;
    if (!this.kept.has(key)) this.kept.set(key, this.#paintGround(scene));
    return this.kept.get(key);
  }
  #paintGround(number) {
    const { map, ratio } = this, { dark, line, paper, ink } = colours(), scene = map.scenes[number];
    const side = this.width / map.columns;
    const canvas = new OffscreenCanvas(this.canvas.width, this.canvas.height), pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    const haze = this.#haze(number);
    [...scene.ground].forEach((sign, cell) => {
      const x = (cell % map.columns) * side, y = Math.floor(cell / map.columns) * side, ground = map.grounds[sign];
      pen.fillStyle = dark ? ground.dark : ground.light;
      pen.fillRect(x, y, side, side);
      if (ground.sign) {
        pen.fillStyle = readable(dark ? ground.dark : ground.light, ink, paper);
        pen.globalAlpha = 0.42;
        pen.font = `${side * 0.34}px system-ui, sans-serif`;
        pen.fillText(ground.sign, x + side * 0.24, y + side * 0.26);
        pen.globalAlpha = 1;
      }
      pen.strokeStyle = line;
      pen.lineWidth = 1;
      pen.strokeRect(x + 0.5, y + 0.5, side - 1, side - 1);
      if (haze[cell]) this.#fog(pen, x, y, side, haze[cell]);
    });
    for (const [cell, text] of scene.marks) {
      const x = (cell % map.columns) * side, y = Math.floor(cell / map.columns) * side;
      const ground = map.grounds[scene.ground[cell]];
      pen.fillStyle = readable(dark ? ground.dark : ground.light, ink, paper);
      const size = Math.min(side * 0.26, 18);
      pen.font = `700 ${size}px system-ui, sans-serif`;
      pen.textAlign = "right";
      pen.fillText(text, x + side - size * 0.5, y + size * 0.95, side - size);
    }
    pen.strokeStyle = ink;
    pen.lineWidth = Math.max(3, side * 0.07);
    pen.lineCap = "round";
    for (const [one, other] of map.walls) {
      const row = Math.floor(other / map.columns), column = other % map.columns;
      const beside = Math.floor(one / map.columns) === row;
      pen.beginPath();
      pen.moveTo(column * side, row * side);
      pen.lineTo((column + (beside ? 0 : 1)) * side, (row + (beside ? 1 : 0)) * side);
      pen.stroke();
    }
    return canvas;
  }
  #fog(pen, x, y, side, much) {
    pen.save();
    pen.beginPath();
    pen.rect(x, y, side, side);
    pen.clip();
    pen.globalAlpha = Math.min(0.85, 0.35 + much);
    pen.strokeStyle = pen.fillStyle = colours().fog;
    pen.lineWidth = side * 0.07;
    pen.globalAlpha *= 0.5;
    pen.fillRect(x, y, side, side);
    pen.globalAlpha *= 1.5;
    for (let i = -1; i < 5; i++) {
      pen.beginPath();
      pen.moveTo(x + (i * side) / 4, y + side);
      pen.lineTo(x + ((i + 2) * side) / 4, y);
      pen.stroke();
    }
    pen.restore();
  }
  // How much goes missing in each cell of a scene, 0 to 1.
  #haze(number) {
    const { world } = this.recording, haze = new Float64Array(this.map.rows * this.map.columns);
    for (let s = 0; s < world.scene.length; s++) {
      if (world.scene[s] !== number) continue;
      const [row, column] = this.cellOf(world.shows[s]);
      haze[row * this.map.columns + column] = Math.max(haze[row * this.map.columns + column], world.haze[s] / 255);
    }
    return haze;
  }
  // What each cell shows in a scene: the state whose best action is drawn there.
  #shownIn(number) {
    const key = `shown-${number}`;
    if (!this.kept.has(key)) {
      const { world } = this.recording, found = new Map();
      for (let s = 0; s < world.scene.length; s++)
        if (world.scene[s] === number) found.set(this.cellOf(world.shows[s]).join(), world.shows[s]);
      this.kept.set(key, found);
    }
    return this.kept.get(key);
  }
  #drawMap(pen, a, b, f, shown) {
    const { width, tall, recording } = this, { world } = recording, side = width / this.map.columns;
    const late = f > 0.5 && a.stopped;
    const now = late ? b : a;
    const scene = world.scene[f > 0.35 ? b.state : a.state];
    pen.drawImage(this.#ground(scene), 0, 0, width, tall);
    if (shown.arrows) this.#drawArrows(pen, a, scene, side);
    this.#drawSeen(pen, now, side);
    const move = calm.matches ? (f < 0.5 ? 0 : 1) : a.stopped ? (f > 0.5 ? 1 : 0) : ease(Math.max(0, (f - 0.25) / 0.75));
    if (a.stage.method.guesses) this.#drawGuesses(pen, a, b, move, side);
    if (shown.truth) this.#drawTruth(pen, a, b, f, move, side);
  }
  #drawArrows(pen, view, scene, side) {
    const { arrows } = view.stage, { actions } = this.recording.world;
    arrows.seek(view.step + (view.moments === view.stage.before ? 0 : 1));
    pen.strokeStyle = colours().ink;
    pen.globalAlpha = 0.32;
    pen.lineWidth = Math.max(1, side * 0.03);
    for (const [cell, state] of this.#shownIn(scene)) {
      const best = arrows.best(state);
      if (best.length === 0 || best.length > 2) continue;
      const middle = this.middle(cell.split(",").map(Number));
      for (const action of best) if (actions[action].way) arrow(pen, middle, actions[action].way, side * 0.22, side * 0.1, -0.5);
    }
    pen.globalAlpha = 1;
  }
  // A dashed line around the cells that agree with what is seen.
  #drawSeen(pen, view, side) {
    const { row, column, rows, columns } = this.map;
    const at = this.cellOf(view.shows);
    const anyRow = row >= 0 && view.isHidden(row), anyColumn = view.isHidden(column);
    const [top, high] = anyRow ? [0, rows] : [at[0], 1], [left, wide] = anyColumn ? [0, columns] : [at[1], 1];
    pen.strokeStyle = colours().ink;
    pen.lineWidth = Math.max(1.5, side * 0.035);
    pen.setLineDash([side * 0.12, side * 0.09]);
    const inset = pen.lineWidth;
    pen.strokeRect(left * side + inset, top * side + inset, wide * side - 2 * inset, high * side - 2 * inset);
    pen.setLineDash([]);
  }
  #drawGuesses(pen, a, b, move, side) {
    const { guess, "guess-deep": deep, paper } = colours(), K = a.pathways.length;
    const radius = side * (K > 1 ? 0.25 : 0.29), spread = K > 1 ? side * 0.11 : 0;
    pen.lineWidth = Math.max(1, side * 0.022);
    for (let k = 0; k < K; k++) {
      const [x, y] = between(this.middle(this.cellOf(a.pathways[k])), this.middle(this.cellOf(b.pathways[k])), move);
      const turn = (2 * Math.PI * k) / K - Math.PI / 2;
      pen.beginPath();
      pen.arc(x + spread * Math.cos(turn), y + spread * Math.sin(turn), radius, 0, 2 * Math.PI);
      pen.globalAlpha = K > 1 ? 0.28 : 0.6;
      pen.fillStyle = guess;
      pen.fill();
      pen.globalAlpha = K > 1 ? 0.75 : 1;
      pen.strokeStyle = deep;
      pen.stroke();
    }
    pen.globalAlpha = 1;
    if (move > 0 && move < 1) return;
    const view = move >= 1 ? b : a, cells = new Map();
    view.pathways.forEach((state, k) => {
      const key = this.cellOf(state).join();
      if (!cells.has(key)) cells.set(key, []);
      cells.get(key).push(k);
    });
    for (const [key, members] of cells) {
      const middle = this.middle(key.split(",").map(Number));
      if (view.decision >= 0) this.#drawVotes(pen, view, members, middle, side);
      if (cells.size > 1) {
        pen.font = `700 ${side * 0.24}px system-ui, sans-serif`;
        pen.textAlign = "center";
        pen.textBaseline = "middle";
        pen.lineWidth = side * 0.07;
        pen.strokeStyle = paper;
        pen.fillStyle = deep;
        const at = [middle[0] - side * 0.3, middle[1] + side * 0.33];
        pen.strokeText(members.length, ...at);
        pen.fillText(members.length, ...at);
      }
    }
  }
  #drawVotes(pen, view, members, middle, side) {
    const { actions } = this.recording.world, K = view.pathways.length, count = new Map();
    for (const k of members) {
      const best = view.stage.votes.list(view.decision * K + k);
      if (best.length <= 3) for (const action of best) count.set(action, (count.get(action) ?? 0) + 1 / best.length);
    }
    pen.strokeStyle = colours()["guess-deep"];
    for (const [action, n] of count) {
      const { way } = actions[action];
      if (!way) continue;
      pen.lineWidth = side * (0.03 + 0.05 * (n / K));
      pen.globalAlpha = 0.5 + 0.5 * (n / members.length);
      const length = this.#leaves(middle, way, side) ? side * 0.28 : side * 0.5;
      arrow(pen, middle, way, length, side * 0.13, (side * 0.175) / length);
    }
    pen.globalAlpha = 1;
  }
  // Whether an arrow from a cell points out of the map; a long one would be cut off at its edge.
  #leaves([x, y], [down, across], side) {
    return x + across * side < 0 || x + across * side > this.width || y + down * side < 0 || y + down * side > this.tall;
  }
  #drawTruth(pen, a, b, f, move, side) {
    const { truth, "truth-rim": rim } = colours(), { actions } = this.recording.world;
    const from = this.middle(this.cellOf(a.shows)), to = this.middle(this.cellOf(b.shows));
    if (a.decision >= 0 && f < 1) {
      const way = actions[a.stage.action[a.decision]].way;
      if (way && (way[0] || way[1])) {
        const [length, head] = this.#leaves(from, way, side) ? [side * 0.42, side * 0.15] : [side * 0.78, side * 0.2];
        pen.lineWidth = side * 0.14;
        pen.strokeStyle = rim;
        arrow(pen, from, way, length, head, 0);
        pen.lineWidth = side * 0.08;
        pen.strokeStyle = truth;
        arrow(pen, from, way, length, head, 0);
      }
    }
    const [x, y] = between(from, to, move);
    pen.beginPath();
    pen.arc(x, y, side * 0.19, 0, 2 * Math.PI);
    pen.fillStyle = rim;
    pen.fill();
    pen.beginPath();
    pen.arc(x, y, side * 0.145, 0, 2 * Math.PI);
    pen.fillStyle = truth;
    pen.fill();
  }

  // --- strips: a row of values for each component ---

  #box(j, value) {
    const parts = this.recording.world.components, high = (this.tall - 12) / parts.length;
    const left = Math.min(130, this.width * 0.26), wide = Math.min((this.width - left - 4) / parts[j].size, high - 22);
    return { x: left + value * wide, y: j * high + 12, wide, high: high - 22 };
  }
  #drawStrips(pen, a, b, f, shown) {
    const { recording } = this, parts = recording.world.components, { ink, soft, line, paper } = colours();
    const move = calm.matches ? (f < 0.5 ? 0 : 1) : a.stopped ? (f > 0.5 ? 1 : 0) : ease(Math.max(0, (f - 0.25) / 0.75));
    const now = f > 0.5 ? b : a;
    const K = a.pathways.length;
    parts.forEach((part, j) => {
      const first = this.#box(j, 0);
      pen.textBaseline = "middle";
      pen.textAlign = "left";
      pen.fillStyle = ink;
      pen.font = "600 15px system-ui, sans-serif";
      pen.fillText(part.name, 0, first.y + first.high / 2 - 9, first.x - 10);
      pen.fillStyle = soft;
      pen.font = "13px system-ui, sans-serif";
      pen.fillText(now.isHidden(j) ? "hidden: ?" : "seen", 0, first.y + first.high / 2 + 10, first.x - 10);
      const every = Math.ceil(18 / first.wide);
      for (let value = 0; value < part.size; value++) {
        const { x, y, wide, high } = this.#box(j, value);
        pen.strokeStyle = line;
        pen.lineWidth = 1;
        pen.strokeRect(x + 0.5, y + 0.5, wide - 1, high - 1);
        if (!now.isHidden(j) && recording.value(now.shows, j) === value) {
          pen.strokeStyle = ink;
          pen.lineWidth = 2;
          pen.setLineDash([5, 4]);
          pen.strokeRect(x + 2, y + 2, wide - 4, high - 4);
          pen.setLineDash([]);
        }
        if (value % every === 0) {
          pen.fillStyle = soft;
          pen.textAlign = "center";
          pen.font = "11px system-ui, sans-serif";
          pen.fillText(recording.label(j, value), x + wide / 2, y + high + 7, wide * every);
        }
      }
      const centre = (state) => {
        const { x, y, wide, high } = this.#box(j, recording.value(state, j));
        return [x + wide / 2, y + high / 2];
      };
      const unit = Math.min(first.wide, first.high);
      const { guess, "guess-deep": deep, truth, "truth-rim": rim } = colours();
      for (let k = 0; a.stage.method.guesses && k < K; k++) {
        const [x, y] = between(centre(a.pathways[k]), centre(b.pathways[k]), move), turn = (2 * Math.PI * k) / K - Math.PI / 2;
        const spread = K > 1 ? unit * 0.12 : 0;
        pen.beginPath();
        pen.arc(x + spread * Math.cos(turn), y + spread * Math.sin(turn), unit * 0.26, 0, 2 * Math.PI);
        pen.globalAlpha = K > 1 ? 0.2 : 0.55;
        pen.fillStyle = guess;
        pen.fill();
        pen.globalAlpha = 0.55;
        pen.strokeStyle = deep;
        pen.lineWidth = 1;
        pen.stroke();
        pen.globalAlpha = 1;
      }
      if (shown.truth) {
        const [x, y] = between(centre(a.shows), centre(b.shows), move);
        for (const [size, fill] of [[0.18, rim], [0.13, truth]]) {
          pen.beginPath();
          pen.arc(x, y, unit * size, 0, 2 * Math.PI);
          pen.fillStyle = fill;
          pen.fill();
        }
      }
    });
    pen.fillStyle = paper;
  }
}

// An arrow from a middle: `shift` moves its tail along its way, in lengths.
function arrow(pen, [x, y], [down, across], length, head, shift) {
  const norm = Math.hypot(down, across);
  if (!norm) {
    pen.beginPath();
    pen.arc(x, y, head, 0, 2 * Math.PI);
    pen.stroke();
    return;
  }
  const dx = across / norm, dy = down / norm;
  const sx = x + dx * length * shift, sy = y + dy * length * shift, ex = sx + dx * length, ey = sy + dy * length;
  pen.lineCap = pen.lineJoin = "round";
  pen.beginPath();
  pen.moveTo(sx, sy);
  pen.lineTo(ex, ey);
  pen.moveTo(ex - dx * head - dy * head * 0.8, ey - dy * head + dx * head * 0.8);
  pen.lineTo(ex, ey);
  pen.lineTo(ex - dx * head + dy * head * 0.8, ey - dy * head - dx * head * 0.8);
  pen.stroke();
}

// Of two inks, the one that is easier to read on a colour.
function readable(ground, ink, paper) {
  const light = (colour) => {
    const n = parseInt(colour.slice(1), 16);
    return 0.3 * (n >> 16) + 0.59 * ((n >> 8) & 255) + 0.11 * (n & 255);
  };
  return Math.abs(light(ground) - light(ink)) > Math.abs(light(ground) - light(paper)) ? ink : paper;
}
