// --- one agent: its world, what it sees, its guesses and what it does --------------------------------------------------

class Panel {
  constructor(recording, number, options) {
    this.recording = recording;
    this.number = number;
    this.method = recording.methods[number];
    const { world } = recording;
    this.canvas = make("canvas", { role: "img" });
    this.scene = new Scene(recording, this.canvas);
    this.cards = world.components.map((part) => new Card(part));
    this.bars = world.actions.map((action) => new Bar(action));
    this.told = make("p", { class: "told" });
    this.score = make("p", { class: "score" });
    const plans = this.method.plans;
    const how = this.method.K > 1 ? (plans ? "by the best average value" : "one guess, drawn at random, decides") : "";
    const beside = make("div", { class: "beside" },
      make("h4", {}, "What it sees"),
      make("div", { class: "cards" }, ...this.cards.map((card) => card.element)),
      make("h4", {}, "What it does", how ? make("small", {}, ` ${how}`) : ""),
      make("div", { class: "bars", role: "list" }, ...this.bars.map((bar) => bar.element)));
    this.holds = make("p", { class: "holds" });
    const picture = make("div", { class: "picture" }, this.canvas, this.holds);
    // A map of few cells need not fill the page.
    if (world.map) picture.style.setProperty("--most", `${7 * world.map.columns}rem`);
    this.element = make("section", { class: "panel", "aria-label": this.method.title });
    if (options.named) this.element.append(make("h3", {}, this.method.title));
    this.element.append(make("div", { class: "two" }, picture, beside), this.told, this.score);
  }
  size() {
    const width = this.canvas.parentElement.clientWidth;
    if (width) this.scene.size(width);
  }
  // From view `a`, the share `f` of the way to view `b`.
  draw(a, b, f, shown) {
    this.scene.draw(a, b, f, shown);
    const view = f > 0.5 ? b : a;
    // Nothing to write if the same was written last. The moment after an episode's end has no decision yet.
    const now = [view.i, view.moments, view.decision, shown.truth];
    if (this.now?.every((item, i) => item === now[i])) return;
    this.now = now;
    const groups = view.groups;
    this.cards.forEach((card, j) => card.show(this.recording, view, j, groups, shown));
    this.#showBars(view);
    this.#tell(view, groups, shown);
    this.element.dataset.state = view.state;
    this.element.dataset.step = view.stage.at + view.step;
    this.element.dataset.ghosts = groups.map(({ state, n }) => `${state}:${n}`).join(" ");
  }
  #showBars(view) {
    const { stage, decision } = view, K = this.method.K;
    const votes = new Float64Array(this.bars.length);
    if (decision >= 0) {
      for (let k = 0; k < K; k++) {
        const best = stage.votes.list(decision * K + k);
        for (const action of best) votes[action] += 1 / best.length;
      }
    }
    const p = decision >= 0 ? stage.probabilities(decision) : null;
    const few = this.bars.length <= 12;
    this.bars.forEach((bar, action) => {
      bar.show(p ? p[action] : null, K > 1 ? votes[action] : 0, p !== null && stage.action[decision] === action);
      bar.element.hidden = !few && !(p && p[action] > 0);
    });
  }
  #tell(view, groups, shown) {
    const { recording } = this, { stage, decision } = view, { world } = recording, K = this.method.K;
    const words = [];
    const names = view.hidden.map((j) => world.components[j].name);
    if (view.stopped) {
      const t = view.step;
      words.push(stage.ended[t] ? `The episode ends. Reward ${signed(stage.rewardOf(t))}.` : "The episode is cut off.");
    } else if (names.length === 0) words.push("Everything is seen.");
    else words.push(`Hidden: ${listed(names)}.`);
    if (groups.length && shown.truth && names.length) {
      const right = groups.find(({ state }) => state === view.shows)?.n ?? 0;
      words.push(K > 1 ? `${right} of ${K} guesses ${right === 1 ? "is" : "are"} right.` : right ? "The guess is right." : "The guess is wrong.");
    } else if (groups.length > 1) words.push(`${K} guesses, ${groups.length} different.`);
    if (decision >= 0) {
      const action = world.actions[stage.action[decision]], p = stage.probabilities(decision)[stage.action[decision]];
      let went = `It goes ${action.sign ? `${action.sign} ` : ""}${action.name}`;
      if (!action.way) went = /^\d+$/.test(action.name) ? `It takes action ${action.name}` : `It does: ${action.name}`;
      words.push(`${went} (${percent(p)})${shown.truth ? this.#led(view, action) : ""}. Reward ${signed(stage.rewardOf(decision))}.`);
    }
    this.told.textContent = words.join(" ");
    const now = view.moments === stage.before ? view.i : view.step + 1;
    this.score.textContent = `Since step ${thousands(stage.at)}: reward ${signed(Math.round(stage.total[now] * 100) / 100)}, ` +
      `${stage.ends[now]} ${stage.ends[now] === 1 ? "episode" : "episodes"} ended.`;
    const scene = world.map?.scenes[world.scene[view.state]]?.name;
    this.holds.textContent = shown.truth && scene ? `Now: ${scene}` : "";
    this.canvas.setAttribute("aria-label", `${scene ? `${scene}. ` : ""}${this.told.textContent}`);
  }
  // Where an action led, if elsewhere than it aimed: by chance, a wall, or the rules of the world.
  #led(view, action) {
    const { map } = this.recording.world;
    if (!map || !action.way) return "";
    const from = this.scene.cellOf(view.shows);
    const arrival = this.recording.world.shows[view.stage.arrival(view.decision)];
    const to = this.scene.cellOf(arrival);
    const aim = [clip(from[0] + action.way[0], map.rows), clip(from[1] + action.way[1], map.columns)];
    if (aim[0] === to[0] && aim[1] === to[1]) return "";
    return from[0] === to[0] && from[1] === to[1] ? ", but stays where it is" : ", but ends up elsewhere";
  }
}

const clip = (x, n) => Math.min(Math.max(x, 0), n - 1);
const listed = (names) => (names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`);

// A component: its value, or a question mark with what the pathways guess.
class Card {
  constructor(part) {
    this.front = make("span", { class: "front" });
    this.guesses = make("span", { class: "guesses" });
    this.truth = make("span", { class: "true" });
    const back = make("span", { class: "back" }, make("span", { class: "mark" }, "?"));
    this.turning = make("div", { class: "turning", "aria-hidden": "true" }, this.front, back);
    this.spoken = make("span", { class: "spoken" });
    this.element = make("div", { class: "card" }, make("span", { class: "name" }, part.name), this.turning, this.spoken, this.guesses, this.truth);
  }
  show(recording, view, j, groups, shown) {
    const hidden = view.isHidden(j), value = recording.value(view.shows, j), label = recording.label(j, value);
    this.element.classList.toggle("lost", hidden);
    if (!hidden) this.front.textContent = label;
    this.front.classList.toggle("long", label.length > 3);
    const count = new Map();
    for (const { state, n } of groups) count.set(recording.value(state, j), (count.get(recording.value(state, j)) ?? 0) + n);
    const most = [...count].sort((a, b) => b[1] - a[1]);
    const said = most.slice(0, 3).map(([guess, n]) => `${recording.label(j, guess)}${view.pathways.length > 1 ? `\u00a0×${n}` : ""}`);
    if (most.length > 3) said.push("…");
    this.guesses.textContent = hidden && said.length ? `guess ${said.join(", ")}` : "";
    this.truth.textContent = hidden && shown.truth ? `true ${label}` : "";
    this.spoken.textContent = hidden ? "hidden" : label;
    this.element.dataset.value = hidden ? "?" : value;
  }
}

// An action: its probability, and how many pathways are for it.
class Bar {
  constructor(action) {
    this.fill = make("span", { class: "fill" });
    this.number = make("span", { class: "number" });
    this.votes = make("span", { class: "votes" });
    const name = make("span", { class: "name" }, action.sign ? make("b", {}, action.sign) : "", make("span", { class: "word" }, action.name));
    this.element = make("div", { class: "bar", role: "listitem", title: action.name }, name, make("span", { class: "track" }, this.fill), this.number, this.votes);
  }
  show(p, votes, taken) {
    this.element.classList.toggle("taken", taken);
    this.element.classList.toggle("none", !p);
    this.fill.style.transform = `scaleX(${p ?? 0})`;
    this.number.textContent = p === null ? "" : percent(p);
    // A guess for which several actions are best shares its vote: what is left of a whole one is hollow.
    const whole = Math.floor(votes + 1e-9);
    this.votes.textContent = "●".repeat(Math.min(whole, 20)) + (votes - whole > 1e-6 && whole < 20 ? "○" : "");
    this.votes.title = votes > 0 ? `votes: ${Math.round(votes * 100) / 100}` : "";
    this.element.dataset.p = p ?? "";
  }
}
