// Finds runs by what is typed, and opens or closes all that are shown. Without it everything is there to be read.
"use strict";
(() => {
  const box = document.getElementById("find");
  const found = document.getElementById("found");
  if (!box) return;
  document.documentElement.classList.add("scripted");
  const tasks = [...document.querySelectorAll("section.task")].map((section) => ({
    section,
    runs: [...section.querySelectorAll("details")].map((run) => ({ run, text: run.dataset.text.toLowerCase() })),
  }));
  const show = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const { section, runs } of tasks) {
      let here = 0;
      for (const { run, text } of runs) {
        run.hidden = !words.every((word) => text.includes(word));
        here += !run.hidden;
      }
      section.hidden = !here;
      count += here;
    }
    found.textContent = words.length ? `${count} runs` : "";
  };
  box.addEventListener("input", show);
  document.getElementById("open").addEventListener("click", () => {
    const shown = tasks.flatMap(({ runs }) => runs).filter(({ run }) => !run.hidden);
    const open = !shown.every(({ run }) => run.open);
    for (const { run } of shown) run.open = open;
  });
  // A link to a run opens it.
  const follow = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target instanceof HTMLDetailsElement) target.open = true;
  };
  addEventListener("hashchange", follow);
  follow();
})();
