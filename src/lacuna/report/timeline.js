// --- time: agreement, error and losses, and what happened when ----------------------------------------------------------

class Timeline {
  constructor(recording, number, seek) {
    this.recording = recording;
    this.number = number;
    this.canvas = make("canvas", { "aria-hidden": "true" });
    this.element = make("div", { class: "line" }, this.canvas);
    const to = (event) => {
      const box = this.canvas.getBoundingClientRect();
      seek(Math.round(clip((event.clientX - box.left) / box.width, 1.000001) * (this.times.length - 1)));
    };
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      to(event);
    });
    this.canvas.addEventListener("pointermove", (event) => event.buttons && to(event));
  }
  load(stage, times) {
    this.times = times;
    this.stage = this.recording.tracks[this.number][stage];
    this.parting = this.number ? this.recording.parting(stage, this.number) : -1;
    const { bad } = this.recording.world, d = this.recording.world.components.length;
    this.columns = times.map((time) => {
      const view = this.stage.view(time), groups = view.groups, K = view.pathways.length;
      const right = groups.find(({ state }) => state === view.shows)?.n ?? 0;
      // A fall that stops an episode is at its late time, and not at the start of the next episode too.
      const fell = !time.late && time.t > 0 && !this.stage.stopAfter.has(time.t - 1) && bad[view.state];
      return {
        agree: groups.length ? groups[0].n / K : 0, wrong: groups.length ? 1 - right / K : 0,
        lost: view.hidden.length / d, fell: fell || (view.stopped && bad[view.state]), end: view.stopped,
      };
    });
    this.kept = null;
  }
  size() {
    const width = this.canvas.parentElement.clientWidth, ratio = Math.min(devicePixelRatio || 1, 2);
    if (!width || (this.width === width && this.ratio === ratio)) return;
    Object.assign(this, { width, ratio, high: 56, kept: null });
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(this.high * ratio);
    this.canvas.style.height = `${this.high}px`;
  }
  #paint() {
    const { width, high, ratio, columns } = this, { ink, line, guess, soft } = colours();
    const kept = new OffscreenCanvas(this.canvas.width, this.canvas.height), pen = kept.getContext("2d");
    pen.scale(ratio, ratio);
    const step = width / Math.max(1, columns.length - 1), base = high - 12, room = base - 12;
    const x = (i) => i * step;
    pen.fillStyle = guess;
    pen.globalAlpha = 0.35;
    pen.beginPath();
    pen.moveTo(0, base);
    columns.forEach(({ agree }, i) => pen.lineTo(x(i), base - room * agree));
    pen.lineTo(width, base);
    pen.fill();
    pen.globalAlpha = 1;
    pen.strokeStyle = ink;
    pen.lineWidth = 1.3;
    pen.beginPath();
    columns.forEach(({ wrong }, i) => pen[i ? "lineTo" : "moveTo"](x(i), base - room * wrong));
    pen.stroke();
    pen.fillStyle = soft;
    columns.forEach(({ lost }, i) => lost && pen.fillRect(x(i) - Math.max(step, 1) / 2, base + 2, Math.max(step * 0.85, 1), 9 * lost));
    pen.strokeStyle = line;
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(0, base + 0.5);
    pen.lineTo(width, base + 0.5);
    pen.stroke();
    columns.forEach(({ fell, end }, i) => {
      if (end) {
        pen.strokeStyle = soft;
        pen.setLineDash([2, 3]);
        pen.beginPath();
        pen.moveTo(x(i), 8);
        pen.lineTo(x(i), base);
        pen.stroke();
        pen.setLineDash([]);
      }
      if (fell) {
        pen.fillStyle = ink;
        pen.beginPath();
        pen.moveTo(x(i) - 4, 0);
        pen.lineTo(x(i) + 4, 0);
        pen.lineTo(x(i), 7);
        pen.fill();
      }
    });
    if (this.parting > 0) {
      const at = x(this.times.findIndex(({ t, late }) => t === this.parting && !late));
      pen.strokeStyle = ink;
      pen.lineWidth = 2;
      pen.beginPath();
      pen.moveTo(at, 0);
      pen.lineTo(at, high);
      pen.stroke();
      pen.fillStyle = ink;
      pen.font = "11px system-ui, sans-serif";
      const right = at > width - 90;
      pen.textAlign = right ? "right" : "left";
      pen.lineWidth = 4;
      pen.strokeStyle = colours().paper;
      pen.strokeText("paths part", at + (right ? -5 : 5), 17);
      pen.fillText("paths part", at + (right ? -5 : 5), 17);
    }
    return kept;
  }
  draw(i) {
    const pen = this.canvas.getContext("2d");
    this.kept ??= this.#paint();
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
    pen.drawImage(this.kept, 0, 0);
    const x = ((i * this.width) / Math.max(1, this.times.length - 1)) * this.ratio;
    pen.fillStyle = colours().ink;
    pen.fillRect(clip(x - this.ratio, this.canvas.width - 2 * this.ratio + 1), 0, 2 * this.ratio, this.canvas.height);
  }
}

// Where to jump: the next time of a kind after time i; -1 if there is none.
const LONG = 6;
function nextOf(kind, lines, i) {
  const length = lines[0].columns.length;
  const any = (at, name) => lines.some((line) => line.columns[at][name]);
  if (kind === "blackout") {
    let longest = 0;
    for (const { columns } of lines) for (let at = 0, run = 0; at < length; at++) longest = Math.max(longest, (run = columns[at].lost ? run + 1 : 0));
    const enough = Math.min(LONG, longest);
    for (let at = i + 1; enough && at < length; at++)
      for (const { columns } of lines) {
        if (at && columns[at - 1].lost) continue;
        let run = 0;
        while (at + run < length && columns[at + run].lost) run++;
        if (run >= enough) return at;
      }
    return -1;
  }
  for (let at = i + 1; at < length; at++) if (any(at, kind === "fall" ? "fell" : "end")) return at;
  return -1;
}
