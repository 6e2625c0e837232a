// --- the address ----------------------------------------------------------------------------------------------------

// What readers choose stands in the address, behind the place: #figure-curves?Measure=reward+per+step&off=qmdp.

function place() {
  return decodeURIComponent(location.hash.slice(1).split("?")[0]);
}

const switches = () => [...document.querySelectorAll("[data-switch]")];
const inputsOf = (one) => [...one.querySelectorAll("input, option")];
const isOn = (input) => input.checked ?? input.selected;

function choices() {
  const found = new URLSearchParams();
  for (const one of switches()) {
    const inputs = inputsOf(one);
    const on = inputs.find(isOn);
    if (on && on !== inputs[0]) found.set(one.dataset.switch, on.value);
  }
  for (const name of hidden) found.append("off", name);
  for (const [name, on] of pressed) found.append(on ? "with" : "without", name);
  return String(found);
}

function writeAddress() {
  const text = choices();
  const hash = (place() ? `#${encodeURIComponent(place())}` : "") + (text ? `${place() ? "" : "#"}?${text}` : "");
  if (hash !== location.hash) history.replaceState(null, "", hash || location.pathname + location.search);
}

function readAddress() {
  const told = location.hash.split("?")[1];
  if (told === undefined) return;
  const found = new URLSearchParams(told);
  for (const one of switches()) {
    const inputs = inputsOf(one);
    const wanted = inputs.find((input) => input.value === found.get(one.dataset.switch)) ?? inputs[0];
    wanted[wanted.matches("option") ? "selected" : "checked"] = true;
  }
  hidden.clear();
  found.getAll("off").forEach((name) => hidden.add(name));
  pressed.clear();
  for (const [word, on] of [["with", true], ["without", false]]) found.getAll(word).forEach((name) => pressed.set(name, on));
}

function follow() {
  readAddress();
  showWhen();
  redraw();
  showChoices();
  openTarget();
}
addEventListener("hashchange", follow);

root.dataset.drawn = isDark() ? "dark" : "light";
follow();
if (place()) document.getElementById(place())?.scrollIntoView();
