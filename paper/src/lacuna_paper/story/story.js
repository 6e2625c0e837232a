// --- the story: the reader's share of lost cards holds for the whole page ----------------------------------------------

const study = JSON.parse(document.getElementById("study").textContent);

function choose(theta, tell = true) {
  const i = study.theta.indexOf(theta);
  if (i < 0) return;
  for (const input of document.querySelectorAll(".thetas input")) input.checked = Number(input.value) === theta;
  const place = document.querySelector("#scene-lose .replay"), player = players.get(place);
  const name = `lose-${Math.round(100 * theta)}`;
  if (place.dataset.recording !== name) player.load(name, 0, player.time.t);
  const { left, wide } = document.querySelector("svg.study").dataset, line = document.getElementById("theta-line");
  for (const end of ["x1", "x2"]) line.setAttribute(end, Number(left) + Number(wide) * theta);
  document.getElementById("theta-told").textContent = `${Math.round(100 * theta)} %`;
  for (const item of document.querySelectorAll("#theta-values li")) item.firstChild.textContent = study.mean[item.dataset.method][i].toFixed(1);
  if (tell) setAddress(`#theta=${theta}`);
}

for (const input of document.querySelectorAll(".thetas input")) input.addEventListener("change", () => choose(Number(input.value)));
const toldTheta = () => Number(new URLSearchParams(location.hash.slice(1)).get("theta") ?? NaN);
addEventListener("hashchange", () => choose(toldTheta(), false));
choose(toldTheta(), false);
