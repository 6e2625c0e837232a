// --- the player: one time for all agents, controls, keys and the address ------------------------------------------------

const SPEEDS = [0.5, 1, 2, 4, 8, 16];
const PACE = 900; // milliseconds for a step at speed 1
const JUMPS = {
  fall: { text: "fall ▾", label: "Next fall", name: "fall", key: "f" },
  blackout: { text: "long blackout", label: `Next blackout: something is hidden for ${LONG} steps or more`, name: "long blackout", key: "b" },
  end: { text: "episode’s end", label: "Next episode’s end", name: "episode’s end", key: "e" },
};

class Player {
  constructor(element) {
    this.element = element;
    this.shown = { truth: true, arrows: element.dataset.arrows !== "off" };
    this.speed = Number(element.dataset.speed ?? 1);
    this.simple = element.hasAttribute("data-simple");
    this.addressed = element.hasAttribute("data-address");
    this.at = 0;
    this.part = 0;
    element.replaceChildren();
    element.tabIndex = -1;
    this.load(element.dataset.recording, Number(element.dataset.stage ?? 0), Number(element.dataset.step ?? 0));
    element.addEventListener("keydown", (event) => this.#key(event));
    if (this.addressed) document.addEventListener("keydown", (event) => !element.contains(event.target) && this.#key(event));
    new ResizeObserver(() => this.draw()).observe(element);
    themed.add(() => {
      for (const line of this.lines) line.kept = null;
      this.draw();
    });
    if (this.addressed) {
      this.#readAddress();
      addEventListener("hashchange", () => this.#readAddress());
    }
    if (element.hasAttribute("data-playing") && !calm.matches) this.#playWhenSeen();
  }
  load(name, stage = 0, step = 0) {
    this.recording = recordingNamed(name);
    const { methods } = this.recording;
    this.panels = methods.map((_, m) => new Panel(this.recording, m, { named: methods.length > 1 }));
    this.lines = methods.map((_, m) => new Timeline(this.recording, m, (i) => this.seek(i)));
    this.element.replaceChildren();
    this.element.classList.toggle("several", methods.length > 1);
    this.element.append(this.#stages(), make("div", { class: "panels" }, ...this.panels.map((panel) => panel.element)), this.#controls(), this.#time(), this.#legend());
    this.element.dataset.recording = name;
    this.setStage(Math.min(stage, this.recording.at.length - 1), step);
  }
  #stages() {
    const { at } = this.recording;
    this.stageSlider = make("input", { type: "range", min: 0, max: at.length - 1, step: 1, "aria-label": "Stage of learning",
      oninput: () => this.setStage(Number(this.stageSlider.value), this.time.t) });
    this.stageTold = make("output", {});
    const marks = make("span", { class: "marks", "aria-hidden": "true" }, ...at.map((steps) => make("span", {}, thousands(steps))));
    const label = make("label", { class: "stages" }, make("span", {}, "Steps learned before"), make("span", { class: "slider" }, this.stageSlider, marks), this.stageTold);
    label.hidden = at.length < 2;
    return label;
  }
  #controls() {
    const button = (text, label, key, act, more = {}) =>
      make("button", { type: "button", "aria-label": label, title: key ? `${label} (${key})` : label, onclick: act, ...more }, text);
    this.playButton = button("", "Play", "space", () => this.toggle(), { class: "play" });
    const moves = make("div", { class: "group" },
      button("⇤", "To the start", "Home", () => this.seek(0)), button("‹", "One step back", "←", () => this.step(-1)),
      this.playButton, button("›", "One step on", "→", () => this.step(1)));
    this.speedChoice = make("select", { "aria-label": "Speed", onchange: () => this.setSpeed(Number(this.speedChoice.value)) },
      ...SPEEDS.map((speed) => make("option", { value: speed }, `${String(speed).replace("0.5", "½")}×`)));
    moves.append(this.speedChoice);
    const jumps = make("div", { class: "group jumps" }, make("span", {}, "Next"),
      ...Object.entries(JUMPS).map(([kind, { text, label, key }]) =>
        button(text, label, key, () => this.jump(kind), { hidden: kind === "fall" && !this.recording.anyBad, "data-jump": kind })));
    const toggle = (name, text, key) => {
      const box = make("input", { type: "checkbox", onchange: () => this.show(name, box.checked) });
      box.checked = this.shown[name];
      (this.boxes ??= {})[name] = box;
      return make("label", { class: "check", title: `${text} (${key})` }, box, text);
    };
    const checks = make("div", { class: "group checks" }, toggle("truth", "truth", "t"), toggle("arrows", "learned arrows", "a"));
    checks.lastChild.hidden = !this.recording.world.map;
    if (this.simple) jumps.hidden = true;
    return make("div", { class: "controls", role: "group", "aria-label": "Player" }, moves, jumps, checks);
  }
  #time() {
    this.slider = make("input", { type: "range", min: 0, step: 1, "aria-label": "Time", class: "scrub", oninput: () => this.seek(Number(this.slider.value)) });
    this.clock = make("output", { class: "clock" });
    this.parted = make("p", { class: "parted" });
    const named = this.lines.length > 1;
    return make("div", { class: "time" },
      make("div", { class: "lines" }, ...this.lines.map((line, m) => {
        if (named) line.element.prepend(make("span", { class: "whose" }, this.recording.methods[m].title));
        return line.element;
      })),
      this.slider, make("div", { class: "under" }, this.clock, this.parted));
  }
  #legend() {
    const item = (kind, text) => make("li", {}, make("i", { class: kind, "aria-hidden": "true" }), text);
    const items = [item("true", "where it truly is")];
    if (this.recording.methods.some((method) => method.guesses)) items.push(item("guess", this.recording.methods.some((method) => method.K > 1) ? "guesses of the agent, and what each votes for" : "its guess"));
    items.push(item("seen", "what is seen leaves this open"), item("agree", "how many guesses agree"), item("wrong", "share of wrong guesses"), item("lost", "hidden components"));
    if (this.recording.anyBad) items.push(item("fell", "a fall"));
    items.push(...this.#grounds());
    return make("ul", { class: "legend" }, ...items);
  }
  // What the colours of the map are: all but the most common one.
  #grounds() {
    const { map } = this.recording.world;
    if (!map) return [];
    const cells = map.scenes.map((scene) => scene.ground).join("");
    const count = (sign) => cells.split(sign).length;
    const signs = Object.keys(map.grounds).filter((sign) => cells.includes(sign)).sort((a, b) => count(b) - count(a));
    return signs.slice(1).map((sign) => {
      const { name, light, dark } = map.grounds[sign], swatch = make("i", { class: "ground", "aria-hidden": "true" });
      swatch.style.setProperty("--light", light);
      swatch.style.setProperty("--dark", dark);
      return make("li", {}, swatch, name);
    });
  }
  setStage(stage, step = 0) {
    this.stage = stage;
    this.times = this.recording.times(stage);
    for (const line of this.lines) line.load(stage, this.times);
    this.stageSlider.value = stage;
    const learned = this.recording.at[stage];
    this.stageTold.textContent = learned ? `after ${thousands(learned)} steps` : "at the very beginning";
    this.slider.max = this.times.length - 1;
    const parts = this.recording.methods.slice(1).map((_, m) => this.recording.parting(stage, m + 1)).filter((t) => t >= 0);
    const first = Math.min(...parts);
    const when = !parts.length ? "the paths never part here" : first === 0 ? "the paths parted earlier" : `the paths part at step ${thousands(learned + first)}`;
    this.parted.textContent = this.lines.length < 2 ? "" : `Same seed: the same chance moves the world and hides things; ${when}.`;
    this.seek(Math.max(0, this.times.findIndex(({ t, late }) => t === step && !late)));
  }
  get time() {
    return this.times[this.at];
  }
  setSpeed(speed) {
    this.speed = speed;
    this.#changed();
  }
  show(name, on) {
    this.shown[name] = on;
    this.boxes[name].checked = on;
    this.#changed();
  }
  seek(i) {
    this.at = clip(i, this.times.length);
    this.part = 0;
    this.#changed();
  }
  step(n) {
    this.pause();
    this.seek(this.at + n);
  }
  jump(kind) {
    const to = nextOf(kind, this.lines, this.at);
    if (to >= 0) this.seek(to);
    else this.clock.textContent = `No ${JUMPS[kind].name} follows here.`;
  }
  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }
  play() {
    if (this.at >= this.times.length - 1) this.seek(0);
    this.playing = true;
    this.last = performance.now();
    requestAnimationFrame((now) => this.#tick(now));
    this.#changed();
  }
  pause() {
    if (!this.playing) return;
    this.playing = false;
    this.part = 0;
    this.#changed();
  }
  #tick(now) {
    if (!this.playing || !this.element.isConnected) return;
    this.part += ((now - this.last) * this.speed) / PACE;
    this.last = now;
    while (this.part >= 1 && this.at < this.times.length - 1) {
      this.part -= 1;
      this.at += 1;
    }
    if (this.at >= this.times.length - 1) {
      this.pause();
      return;
    }
    this.draw();
    requestAnimationFrame((next) => this.#tick(next));
  }
  // Plays when it comes into view, and rests out of it, until the reader takes over.
  #playWhenSeen() {
    const watcher = new IntersectionObserver(([entry]) => {
      if (entry.isIntersecting && !this.playing) this.play();
      else if (!entry.isIntersecting) this.pause();
    }, { threshold: 0.5 });
    watcher.observe(this.element);
    for (const kind of ["pointerdown", "keydown"]) this.element.addEventListener(kind, () => watcher.disconnect(), { once: true });
  }
  #changed() {
    // Several changes within a frame are drawn once.
    this.waiting ??= requestAnimationFrame(() => {
      this.waiting = null;
      this.draw();
      if (this.addressed) this.#writeAddress();
    });
  }
  draw() {
    const next = this.times[Math.min(this.at + 1, this.times.length - 1)];
    this.panels.forEach((panel, m) => {
      panel.size();
      if (!panel.scene.width) return;
      const stage = this.recording.tracks[m][this.stage];
      panel.draw(stage.view(this.time), stage.view(next), this.part, this.shown);
    });
    for (const line of this.lines) {
      line.size();
      if (line.width) line.draw(this.at + this.part);
    }
    const { t, late } = this.time, learned = this.recording.at[this.stage];
    this.slider.value = this.at;
    const told = `Step ${thousands(learned + t)}${late ? ", the episode is over" : ""}`;
    this.slider.setAttribute("aria-valuetext", told);
    this.clock.textContent = `${told} · ${thousands(t)} of ${thousands(this.recording.steps)} recorded here`;
    this.playButton.textContent = this.playing ? "❚❚" : "▶";
    this.playButton.setAttribute("aria-label", this.playing ? "Pause" : "Play");
    this.speedChoice.value = this.speed;
    this.element.dataset.drawn = this.at;
  }
  #key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.defaultPrevented) return;
    const onSlider = event.target.matches?.("input[type=range], select");
    const far = event.shiftKey ? 10 : 1;
    const keys = {
      ArrowLeft: () => this.step(-far), ArrowRight: () => this.step(far), Home: () => this.seek(0), End: () => this.seek(this.times.length - 1),
      f: () => this.jump("fall"), b: () => this.jump("blackout"), e: () => this.jump("end"), t: () => this.show("truth", !this.shown.truth),
      a: () => this.show("arrows", !this.shown.arrows), "+": () => this.setSpeed(SPEEDS[clip(SPEEDS.indexOf(this.speed) + 1, SPEEDS.length)]),
      "-": () => this.setSpeed(SPEEDS[clip(SPEEDS.indexOf(this.speed) - 1, SPEEDS.length)]),
      " ": () => this.toggle(), k: () => this.toggle(),
    };
    if (/^[1-9]$/.test(event.key) && Number(event.key) <= this.recording.at.length) keys[event.key] = () => this.setStage(Number(event.key) - 1, this.time.t);
    if (!(event.key in keys) || (onSlider && event.key.length > 1) || (event.key === " " && event.target.matches?.("button, input, summary"))) return;
    event.preventDefault();
    keys[event.key]();
  }
  // Where the reader is stands in the address, so that a link leads there: #stage=2&step=37.
  #writeAddress() {
    const { t, late } = this.time, told = new URLSearchParams({ stage: this.recording.at[this.stage], step: t });
    if (late) told.set("late", "1");
    if (!this.shown.truth) told.set("truth", "0");
    if (!this.shown.arrows) told.set("arrows", "0");
    if (this.speed !== 1) told.set("speed", this.speed);
    if (this.playing || `#${told}` === location.hash) return;
    // Browsers refuse addresses that change many times in a second.
    clearTimeout(this.writing);
    this.writing = setTimeout(() => setAddress(`#${told}`), 250);
  }
  #readAddress() {
    const told = new URLSearchParams(location.hash.slice(1));
    if (!told.has("step")) return;
    const stage = this.recording.at.indexOf(Number(told.get("stage")));
    for (const name of ["truth", "arrows"]) this.show(name, told.get(name) !== "0");
    if (SPEEDS.includes(Number(told.get("speed") ?? 1))) this.speed = Number(told.get("speed") ?? 1);
    this.setStage(Math.max(stage, 0));
    const [t, late] = [Number(told.get("step")), told.get("late") === "1"];
    const i = this.times.findIndex((time) => time.t === t && time.late === late);
    this.seek(Math.max(i, 0));
  }
}

function setAddress(hash) {
  try {
    history.replaceState(null, "", hash);
  } catch { /* a page inside a notebook has no address of its own */ }
}

const players = new Map();
function startPlayers() {
  for (const element of document.querySelectorAll(".replay")) players.set(element, new Player(element));
  for (const button of document.querySelectorAll("button.theme"))
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      try {
        localStorage.setItem("lacuna-theme", root.dataset.theme);
      } catch { /* pages may keep nothing here */ }
      redrawAll();
    });
}
startPlayers();
