// What the pages need beyond Streamlit's widgets: keys, unsent text, time on the item, the page's language.
// Everything works without it, by mouse and by Tab. It sends nothing but the visitor's own text and times.
(() => {
  "use strict"
  const state = () => document.querySelector(".cr-state")?.dataset ?? {}
  const post = (path, body) =>
    fetch(`./${path}`, {
      method: "POST", keepalive: true, credentials: "same-origin",
      headers: { "Content-Type": "application/json", "X-Crossed": "1" }, body: JSON.stringify(body),
    }).catch(() => {})

  // ── keys ────────────────────────────────────────────────────────────────────────────────────────────
  const groups = () => [...document.querySelectorAll('[role="radiogroup"]')].filter((g) => g.offsetParent)
  const radios = (group) => [...group.querySelectorAll('input[type="radio"]')]
  const answered = (group) => group.dataset.crChosen === "1" || radios(group).some((r) => r.checked)
  const pointOf = (event) => {
    const digit = /^(?:Digit|Numpad)([0-9])$/.exec(event.code)?.[1] ?? (/^[0-9]$/.test(event.key) ? event.key : null)
    if (digit !== null) return digit === "0" ? 9 : Number(digit) - 1
    return event.code === "Minus" || event.code === "NumpadSubtract" ? 10 : null
  }
  // A Hangul keyboard reports another character for the same key, so letters are told by their place.
  const letterOf = (event) =>
    /^[a-z]$/i.test(event.key) ? event.key.toLowerCase() : (/^Key([A-Z])$/.exec(event.code)?.[1] ?? "").toLowerCase()

  const choose = (pick) => {
    const all = groups()
    const group = all.find((g) => g.contains(document.activeElement)) ?? all.find((g) => !answered(g))
    const radio = group && pick(group)
    if (!radio) return false
    radio.click()
    group.dataset.crChosen = "1"
    awaiting = isCannot(radio) ? all.length : 0 // its reasons appear with the server's answer
    if (awaiting) {
      radio.focus()
      return true
    }
    const next = all.find((g) => g !== group && !answered(g))
    if (next) radios(next)[0].focus({ preventScroll: false })
    else radio.focus()
    return true
  }
  let awaiting = 0
  const isCannot = (radio) => {
    const group = radio.closest('[role="radiogroup"]')
    return Boolean(group?.querySelector("strong")) && !radio.closest("label")?.querySelector("strong")
  }
  const point = (n) => (group) => radios(group).filter((r) => !isCannot(r))[n] ?? radios(group)[n]
  const cannot = (group) => radios(group).find(isCannot)
  const press = (name) => {
    const button = document.querySelector(`[class*="st-key-${name}-"] button:not(:disabled)`)
    button?.click()
    return Boolean(button)
  }
  const typing = (target) =>
    target.isContentEditable || target.tagName === "TEXTAREA" || target.tagName === "SELECT" ||
    target.getAttribute("role") === "combobox" || (target.tagName === "INPUT" && target.type !== "radio" && target.type !== "checkbox")

  document.addEventListener("keydown", (event) => {
    active()
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing || typing(event.target)) return
    const number = pointOf(event)
    let done = false
    if (number !== null && !event.shiftKey) done = choose(point(number))
    else if (letterOf(event) === "x") done = choose(cannot)
    else if (letterOf(event) === "n") done = !event.repeat && press("next")
    else if (letterOf(event) === "b") done = !event.repeat && press("back")
    else if (letterOf(event) === "u") done = !event.repeat && press("unrated")
    if (done) event.preventDefault()
  })

  // ── unsent text ─────────────────────────────────────────────────────────────────────────────────────
  let pending = null
  let timer = 0
  const flush = () => {
    clearTimeout(timer)
    if (pending) post("draft", pending)
    pending = null
  }
  document.addEventListener("input", (event) => {
    if (event.target.tagName !== "TEXTAREA" || !state().item) return
    pending = { item: state().item, window: state().window, text: event.target.value }
    clearTimeout(timer)
    timer = setTimeout(flush, 1000)
  })
  document.addEventListener("focusout", flush)

  // ── time on the item: only while the page is visible and somebody is there ──────────────────────────
  const IDLE = 60_000, REPORT = 15_000
  let item = null, window_ = null, last = performance.now(), lastAct = last, visible = 0, focused = 0, reported = last
  const tick = () => {
    const now = performance.now()
    const span = Math.min(now, lastAct + IDLE) - last
    if (span > 0 && !document.hidden) {
      visible += span
      if (document.hasFocus()) focused += span
    }
    last = now
  }
  const report = () => {
    tick()
    if (item && visible >= 100)
      post("dwell", { item, window: window_, visible_ms: Math.round(visible), focused_ms: Math.round(Math.min(focused, visible)) })
    visible = focused = 0
    reported = performance.now()
  }
  function active() {
    tick()
    lastAct = performance.now()
  }
  for (const name of ["pointerdown", "pointermove", "wheel", "touchstart", "scroll"])
    document.addEventListener(name, active, { passive: true, capture: true })
  document.addEventListener("visibilitychange", () => {
    flush()
    report()
  })
  window.addEventListener("pagehide", () => {
    flush()
    report()
  })
  setInterval(() => (performance.now() - reported > REPORT ? report() : tick()), 1000)

  // ── the page itself ─────────────────────────────────────────────────────────────────────────────────
  let page = null
  const noticed = () => {
    const now = state()
    if (!now.locale) return
    if (awaiting && groups().length > awaiting) {
      awaiting = 0
      const reasons = groups().find((g) => !g.querySelector("strong") && !answered(g))
      if (reasons) radios(reasons)[0].focus()
    }
    if (document.documentElement.lang !== now.locale) document.documentElement.lang = now.locale
    if (document.title !== now.title) document.title = now.title
    const here = `${now.page} ${now.item ?? ""}`
    if (here === page) return
    const first = page === null
    page = here
    if (now.item !== item) {
      flush()
      report()
      item = now.item ?? null
      window_ = now.window ?? null
    }
    active()
    document.querySelectorAll('[role="radiogroup"]').forEach((g) => delete g.dataset.crChosen)
    if (first) return
    // A new item begins at its top, also for the keyboard and for screen readers.
    document.querySelector('[data-testid="stMain"]')?.scrollTo(0, 0)
    document.querySelector(".cr-head h1")?.focus({ preventScroll: true })
  }
  new MutationObserver(noticed).observe(document.documentElement, { childList: true, subtree: true, attributes: true, attributeFilter: ["data-item", "data-page", "data-locale", "data-title"] })
})()
