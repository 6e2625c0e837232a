// --- recordings, decoded ----------------------------------------------------------------------------------------------

// Arrays are base64 of little-endian numbers. Nothing is computed again: what is shown was recorded.

const KINDS = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i2: Int16Array, i4: Int32Array, f8: Float64Array };

function unpack({ k, d }) {
  const text = atob(d);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return new KINDS[k](bytes.buffer);
}

class Bits {
  constructor(packed, width) {
    this.bytes = unpack(packed);
    this.width = width;
    this.row = Math.ceil(width / 8);
  }
  has(i, j) {
    return (this.bytes[i * this.row + (j >> 3)] >> (j & 7)) & 1;
  }
  list(i) {
    const found = [];
    for (let j = 0; j < this.width; j++) if (this.has(i, j)) found.push(j);
    return found;
  }
}

class Moments {
  constructor(data, d, K) {
    this.state = unpack(data.state);
    this.hidden = new Bits(data.hidden, d);
    this.pathways = unpack(data.pathways);
    this.K = K;
  }
  of(i) {
    return this.pathways.subarray(i * this.K, (i + 1) * this.K);
  }
}

// Which actions are best in each complete state, at any step: the table at the beginning, and what changed since.
class Arrows {
  constructor(data, actions) {
    this.first = new Bits(data.best, actions);
    const changes = unpack(data.changes);
    this.n = changes.length / 2;
    this.step = changes.subarray(0, this.n);
    this.state = changes.subarray(this.n);
    this.changed = new Bits(data.changed, actions);
    this.at = 0;
    this.newest = new Map();
  }
  seek(t) {
    if (this.at > 0 && this.step[this.at - 1] > t) {
      this.at = 0;
      this.newest.clear();
    }
    while (this.at < this.n && this.step[this.at] <= t) this.newest.set(this.state[this.at], this.at++);
  }
  best(s) {
    return this.newest.has(s) ? this.changed.list(this.newest.get(s)) : this.first.list(s);
  }
}

class Stage {
  constructor(data, world, method) {
    const d = world.components.length, A = world.actions.length;
    this.at = data.at;
    this.world = world;
    this.method = method;
    this.before = new Moments(data.before, d, method.K);
    this.stops = new Moments(data.stops, d, method.K);
    this.votes = new Bits(data.votes, A);
    this.p = { of: unpack(data.p.of), at: unpack(data.p.at) };
    this.action = unpack(data.action);
    this.reward = { of: unpack(data.reward.of), at: unpack(data.reward.at) };
    this.ended = unpack(data.ended);
    this.truncated = unpack(data.truncated);
    this.stopAfter = new Map([...unpack(data.stopped)].map((t, i) => [t, i]));
    this.arrows = new Arrows(data, A);
    this.steps = this.action.length;
    this.#sum();
  }
  probabilities(t) {
    const A = this.world.actions.length, row = this.p.at[t];
    return this.p.of.subarray(row * A, (row + 1) * A);
  }
  rewardOf(t) {
    return this.reward.of[this.reward.at[t]];
  }
  arrival(t) {
    return this.stopAfter.has(t) ? this.stops.state[this.stopAfter.get(t)] : this.before.state[t + 1];
  }
  // Where this agent stands at a time of the page: {t, late}. Late is after step t, before a new episode begins.
  view({ t, late }) {
    if (!late) return new View(this, this.before, t, t < this.steps ? t : -1, t, false);
    if (this.stopAfter.has(t)) return new View(this, this.stops, this.stopAfter.get(t), -1, t, true);
    return new View(this, this.before, t + 1, -1, t, false);
  }
  #sum() {
    // Totals before each step: reward of the recording, reward of the episode, episodes that reached their end.
    this.total = new Float64Array(this.steps + 1);
    this.episode = new Float64Array(this.steps + 1);
    this.ends = new Uint32Array(this.steps + 1);
    for (let t = 0; t < this.steps; t++) {
      const r = this.rewardOf(t);
      this.total[t + 1] = this.total[t] + r;
      this.episode[t + 1] = this.stopAfter.has(t) ? 0 : this.episode[t] + r;
      this.ends[t + 1] = this.ends[t] + (this.ended[t] ? 1 : 0);
    }
  }
}

class View {
  constructor(stage, moments, i, decision, step, stopped) {
    Object.assign(this, { stage, moments, i, decision, step, stopped });
    this.state = moments.state[i];
    this.shows = stage.world.shows[this.state];
    this.pathways = moments.of(i);
  }
  isHidden(j) {
    return Boolean(this.moments.hidden.has(this.i, j));
  }
  get hidden() {
    return this.moments.hidden.list(this.i);
  }
  // The distinct states that pathways take this to be, with how many do; most first.
  get groups() {
    if (!this.stage.method.guesses) return [];
    const count = new Map();
    for (const s of this.pathways) count.set(s, (count.get(s) ?? 0) + 1);
    return [...count].map(([state, n]) => ({ state, n })).sort((a, b) => b.n - a.n || a.state - b.state);
  }
}

class Recording {
  constructor(data) {
    this.header = data.header;
    const world = (this.world = data.world);
    world.shows = unpack(world.shows);
    world.scene = unpack(world.scene);
    world.bad = unpack(world.bad);
    world.haze = unpack(world.haze);
    let stride = 1;
    for (const part of [...world.components].reverse()) {
      part.stride = stride;
      stride *= part.size;
    }
    this.methods = data.methods;
    this.tracks = data.tracks.map((stages, m) => stages.map((stage) => new Stage(stage, world, data.methods[m])));
    this.at = this.header.at;
    this.steps = this.header.steps;
    this.anyBad = world.bad.some(Boolean);
  }
  value(state, j) {
    const part = this.world.components[j];
    return Math.floor(state / part.stride) % part.size;
  }
  label(j, value) {
    return this.world.components[j].labels?.[value] ?? String(value);
  }
  // All times of a stage, in order; after a step that stopped an episode of any agent there is a late one.
  times(stage) {
    const found = [];
    for (let t = 0; t <= this.steps; t++) {
      found.push({ t, late: false });
      if (t < this.steps && this.tracks.some((track) => track[stage].stopAfter.has(t))) found.push({ t, late: true });
    }
    return found;
  }
  // The first step after which the true states of two agents differ; -1 if they never do.
  parting(stage, m) {
    const [one, other] = [this.tracks[0][stage], this.tracks[m][stage]];
    for (let t = 0; t <= this.steps; t++) if (one.before.state[t] !== other.before.state[t]) return t;
    return -1;
  }
}

const recordings = new Map();
function recordingNamed(name) {
  if (!recordings.has(name)) recordings.set(name, new Recording(JSON.parse(document.getElementById(name).textContent)));
  return recordings.get(name);
}

const thousands = (n) => n.toLocaleString("en-GB");
const signed = (x) => (x < 0 ? `−${thousands(-x)}` : x > 0 ? `+${thousands(x)}` : "0");
const percent = (p) => `${(100 * p).toFixed((p > 0 && p < 0.1) || (p > 0.99 && p < 1) ? 1 : 0)} %`;
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}
