"use strict";
(() => {
  const all = (q, from = document) => [...from.querySelectorAll(q)];
  const one = (q, from = document) => from.querySelector(q);
  const body = document.body, main = one("main"), divider = one("#divider"), mix = one("#mix");
  const views = all(".view"), perMM = 4; // pixels of a picture at scale 1
  const at = { view: null, mode: "side", scale: 1, x: 0, y: 0, box: null, entry: -1 };

  for (const img of all("img[data-same]")) img.src = one("#" + img.dataset.same + " img").src;
  body.classList.add("js");
  one(".tools").hidden = false;
  for (const v of views) {
    for (const s of all(".sheet", v)) {
      s.style.width = v.dataset.w * perMM + "px";
      s.style.height = v.dataset.h * perMM + "px";
    }
  }

  // pane is how large the place for one picture is.
  const pane = () => ({ w: main.clientWidth / (at.mode === "side" ? 2 : 1), h: main.clientHeight });

  function draw() {
    if (!at.view) return;
    for (const s of all(".sheet", at.view)) {
      s.style.transform = `translate(${at.x}px, ${at.y}px) scale(${at.scale})`;
      s.style.setProperty("--pixel", 1 / at.scale + "px"); // outlines stay as thin as they are
    }
    const [before, after] = all(".pane", at.view), part = mix.value / 100, x = part * main.clientWidth;
    before.style.clipPath = at.mode === "slider" ? `inset(0 calc(100% - ${x}px) 0 0)` : "";
    after.style.clipPath = at.mode === "slider" ? `inset(0 0 0 ${x}px)` : "";
    after.style.opacity = at.mode === "onion" ? part : "";
    divider.hidden = at.mode !== "slider";
    divider.style.left = x + "px";
  }

  // show brings a rectangle in millimetres into view; without one the whole picture.
  function show(box) {
    at.box = box;
    const v = at.view, p = pane(), whole = { x: +v.dataset.x, y: +v.dataset.y, w: +v.dataset.w, h: +v.dataset.h };
    const b = box || whole, gap = box ? 9 + 0.12 * Math.max(b.w, b.h) : 0;
    const w = (b.w + 2 * gap) * perMM, h = (b.h + 2 * gap) * perMM;
    at.scale = Math.min(p.w / w, p.h / h) * (box ? 1 : 0.97);
    at.x = p.w / 2 - (b.x + b.w / 2 - whole.x) * perMM * at.scale;
    at.y = p.h / 2 - (b.y + b.h / 2 - whole.y) * perMM * at.scale;
    draw();
  }

  function open(id) {
    const v = document.getElementById(id);
    if (!v) return;
    if (at.view !== v) {
      at.view = v;
      for (const o of views) o.classList.toggle("now", o === v);
      for (const o of all(".open")) o.classList.toggle("now", o.dataset.view === id);
      show();
    }
  }

  function mode(m) {
    if ((m === "side") !== (at.mode === "side")) at.x += main.clientWidth / (m === "side" ? -4 : 4);
    at.mode = m;
    for (const k of ["side", "slider", "onion", "difference"]) body.classList.toggle(k, k === m);
    for (const b of all("[data-mode]")) b.classList.toggle("on", b.dataset.mode === m);
    one(".mix").style.visibility = m === "slider" || m === "onion" ? "" : "hidden";
    draw();
  }

  function zoom(by, x, y) {
    const p = pane();
    x = x ?? p.w / 2;
    y = y ?? p.h / 2;
    const s = Math.min(60, Math.max(0.02, at.scale * by));
    at.x = x - (x - at.x) * s / at.scale;
    at.y = y - (y - at.y) * s / at.scale;
    at.scale = s;
    draw();
  }

  // choose shows what an entry is about: in the view on the screen if it is there, else in the first that has it.
  function choose(entry) {
    const marks = entry.dataset.marks.split(" ").map(id => document.getElementById(id)).filter(m => m);
    for (const l of all(".lit")) l.classList.remove("lit");
    for (const e of all(".entry.now")) e.classList.remove("now");
    entry.classList.add("now");
    if (!marks.length) return;
    const of = m => m.closest(".view");
    const real = marks.filter(m => !m.classList.contains("focus")), list = real.length ? real : marks;
    const v = list.some(m => of(m) === at.view) && !entry.closest(".viewlist") ? at.view : of(list[0]);
    open(v.id);
    let box = null;
    for (const m of marks) m.classList.add("lit");
    for (const m of marks.filter(m => of(m) === v)) {
      const r = { x: +m.getAttribute("x"), y: +m.getAttribute("y"), w: +m.getAttribute("width"), h: +m.getAttribute("height") };
      if (!box) { box = r; continue; }
      const x2 = Math.max(box.x + box.w, r.x + r.w), y2 = Math.max(box.y + box.h, r.y + r.h);
      box = { x: Math.min(box.x, r.x), y: Math.min(box.y, r.y) };
      box.w = x2 - box.x;
      box.h = y2 - box.y;
    }
    show(box);
  }

  function step(by) {
    const list = all(".entry:not([disabled])");
    if (!list.length) return;
    at.entry = (at.entry + by + list.length) % list.length;
    const d = list[at.entry].closest("details");
    if (d) d.open = true;
    list[at.entry].scrollIntoView({ block: "nearest" });
    choose(list[at.entry]);
  }

  for (const b of all("[data-mode]")) b.addEventListener("click", () => mode(b.dataset.mode));
  for (const b of all(".open")) b.addEventListener("click", e => { e.preventDefault(); open(b.dataset.view); });
  all(".entry:not([disabled])").forEach((e, i) => e.addEventListener("click", () => { at.entry = i; choose(e); }));
  const outlines = () => one("#outlines").classList.toggle("on", !body.classList.toggle("bare"));
  const press = { "#fit": () => show(), "#in": () => zoom(1.4), "#out": () => zoom(1 / 1.4), "#next": () => step(1), "#prev": () => step(-1), "#outlines": outlines };
  for (const [q, f] of Object.entries(press)) one(q).addEventListener("click", f);
  mix.addEventListener("input", draw);
  window.addEventListener("resize", () => at.view && show(at.box));
  const keys = { 1: () => mode("side"), 2: () => mode("slider"), 3: () => mode("onion"), 4: () => mode("difference"), "+": () => zoom(1.4), "=": () => zoom(1.4), "-": () => zoom(1 / 1.4), 0: () => show(), n: () => step(1), p: () => step(-1), o: outlines };
  window.addEventListener("keydown", e => {
    if (!e.ctrlKey && !e.metaKey && !e.altKey && keys[e.key]) { e.preventDefault(); keys[e.key](); }
  });

  const local = e => {
    const r = main.getBoundingClientRect(), x = e.clientX - r.left;
    return { x: at.mode === "side" && x > r.width / 2 ? x - r.width / 2 : x, y: e.clientY - r.top };
  };
  main.addEventListener("wheel", e => {
    e.preventDefault();
    const p = local(e);
    zoom(Math.exp(-e.deltaY * (e.deltaMode ? 0.05 : 0.0015)), p.x, p.y);
  }, { passive: false });
  let drag = null;
  main.addEventListener("pointerdown", e => {
    if (e.button !== 0) return;
    drag = { x: e.clientX, y: e.clientY, ax: at.x, ay: at.y, divider: e.target === divider };
    main.setPointerCapture(e.pointerId);
  });
  main.addEventListener("pointermove", e => {
    if (!drag) return;
    if (drag.divider) {
      const r = main.getBoundingClientRect();
      mix.value = 100 * (e.clientX - r.left) / r.width;
    } else {
      at.x = drag.ax + e.clientX - drag.x;
      at.y = drag.ay + e.clientY - drag.y;
    }
    draw();
  });
  for (const end of ["pointerup", "pointercancel"]) main.addEventListener(end, () => { drag = null; });
  main.addEventListener("dblclick", () => show());

  // #mode=slider&view=v2&change=1 opens the page there
  const want = new URLSearchParams(location.hash.slice(1));
  const changed = all(".viewlist").find(d => one(".entry", d)), first = changed ? one(".open", changed).dataset.view : views[0] && views[0].id;
  mode(["side", "slider", "onion", "difference"].find(m => m === want.get("mode")) || "side");
  open(want.get("view") || first);
  if (want.has("change")) { at.entry = want.get("change") - 2; step(1); }
})();
