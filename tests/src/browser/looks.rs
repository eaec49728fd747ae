//! How the page looks, as the browser computes it: sides and colours, dark mode, Chinese, a phone.

use super::Browser;
use crate::harness::{Model, Product, Setup};

/// Red, green and blue of a CSS colour.
fn colour(css: &str) -> [f64; 3] {
  let numbers: Vec<f64> = css.split(|letter: char| !letter.is_ascii_digit() && letter != '.').filter_map(|number| number.parse().ok()).collect();
  // `color(srgb …)` counts from 0 to 1, `rgb(…)` to 255.
  let scale = if css.starts_with("color(") { 255.0 } else { 1.0 };
  [numbers[0] * scale, numbers[1] * scale, numbers[2] * scale]
}

fn is_gray(css: &str) -> bool {
  let colour = colour(css);
  colour.iter().fold(0.0_f64, |most, part| most.max(*part)) - colour.iter().fold(255.0_f64, |least, part| least.min(*part)) < 24.0
}

fn is_blue(css: &str) -> bool {
  let [red, green, blue] = colour(css);
  blue > red + 16.0 && blue > green + 8.0
}

fn brightness(css: &str) -> f64 {
  let [red, green, blue] = colour(css);
  0.299 * red + 0.587 * green + 0.114 * blue
}

const OWNER: &str = "[data-testid=message][data-role=OWNER] .bubble";
const AGENT: &str = "[data-testid=message][data-role=AGENT] .bubble";

async fn answered(language: &str, flags: &[&str], phone: Option<(u32, u32)>) -> (Model, Product, Browser) {
  let model = Model::echo().await;
  let product = Setup::new().await.model(&model).start().await;
  let browser = Browser::with(language, flags, phone).await;
  browser.sign_in(&product).await;
  browser.say("hello").await;
  browser.shows_message("AGENT", "POSTED", "re: hello").await;
  (model, product, browser)
}

/// Places of what stands on the page, to compare.
async fn layout(browser: &Browser) -> Vec<(f64, f64, f64, f64)> {
  let mut places = Vec::new();
  for selector in [OWNER, AGENT, "[data-testid=composer]", "[data-testid=messages]"] {
    places.push(browser.place(selector).await);
  }
  places
}

/// Gray at the left, light blue at the right, the composer below, the plus button inside it; dark mode changes colours only.
///
/// Proves CHN-1, CHN-3, CHN-5.
#[tokio::test]
async fn bubbles_have_their_sides_and_colours_and_dark_mode_keeps_the_layout() {
  let (_model, _product, browser) = answered("en-US", &["--window-size=1280,900"], None).await;
  let (owner, agent) = (browser.place(OWNER).await, browser.place(AGENT).await);
  assert!(agent.0 < owner.0 && agent.0 + agent.2 < owner.0 + owner.2, "agent {agent:?}, owner {owner:?}");
  let (gray, blue) = (browser.style(AGENT, "background-color").await, browser.style(OWNER, "background-color").await);
  assert!(is_gray(&gray) && brightness(&gray) > 220.0, "light gray: {gray}");
  assert!(is_blue(&blue) && brightness(&blue) > 200.0, "light blue: {blue}");
  let composer = browser.place("[data-testid=composer]").await;
  assert!(composer.1 > owner.1, "the composer is at the bottom");
  let plus = browser.place("button[aria-label='Attach files']").await;
  assert!(plus.0 >= composer.0 && plus.0 + plus.2 <= composer.0 + composer.2 && plus.1 >= composer.1, "the plus button is in it: {plus:?} {composer:?}");
  let radius: f64 = browser.style("[data-testid=composer]", "border-top-left-radius").await.trim_end_matches("px").parse().unwrap();
  assert!(radius >= 16.0, "a capsule: {radius}");

  let light = layout(&browser).await;
  browser.run("document.documentElement.dataset.theme = 'dark'").await;
  let (gray, blue) = (browser.style(AGENT, "background-color").await, browser.style(OWNER, "background-color").await);
  assert!(is_gray(&gray) && brightness(&gray) < 80.0, "dark gray: {gray}");
  assert!(is_blue(&blue) && brightness(&blue) < 110.0, "dark blue: {blue}");
  assert!(brightness(&browser.style("body", "background-color").await) < 60.0);
  assert!(brightness(&browser.style(AGENT, "color").await) > 160.0, "words can be read");
  assert_eq!(layout(&browser).await, light, "places and sizes stay");
}

/// The choice of dark stays over a reload.
///
/// Proves CHN-5.
#[tokio::test]
async fn dark_mode_is_chosen_in_the_settings_and_stays() {
  let (_model, _product, browser) = answered("en-US", &["--window-size=1280,900"], None).await;
  browser.click("button[aria-label=Menu], button[aria-haspopup]").await;
  browser.click("[role=menuitem]").await;
  browser.find("[data-testid=settings]").await;
  browser.run("[...document.querySelectorAll('[data-testid=settings] input[type=radio]')].find((radio) => radio.value === 'dark').click()").await;
  browser.find("html[data-theme=dark]").await;
  browser.reload().await;
  browser.find("html[data-theme=dark]").await;
  assert!(brightness(&browser.style("body", "background-color").await) < 60.0);
}

/// A Chinese browser gets a Chinese page, without a word of English in it.
#[tokio::test]
async fn a_chinese_browser_gets_a_chinese_page() {
  let model = Model::echo().await;
  let product = Setup::new().await.model(&model).start().await;
  let browser = Browser::with("zh-CN", &["--window-size=1280,900"], None).await;
  browser.client.goto(&product.sign_in).await.unwrap();
  browser.says("form button", "登录").await;
  browser.click("form button").await;
  browser.find("html[lang=zh-CN]").await;
  browser.say("你好").await;
  browser.shows_message("AGENT", "POSTED", "re: 你好").await;
  let label = browser.find("#composer").await.attr("aria-label").await.unwrap().unwrap();
  assert!(!label.is_ascii(), "{label}");
  let standing = browser.find("[data-testid=standing]").await.text().await.unwrap();
  assert!(!standing.is_ascii(), "{standing}");
}

/// On the screen of a phone nothing is wider than the screen, and the composer can be reached.
#[tokio::test]
async fn a_phone_shows_the_conversation_without_scrolling_sideways() {
  let (_model, _product, browser) = answered("en-US", &[], Some((360, 740))).await;
  let sizes = browser.run("return [document.documentElement.scrollWidth, window.innerWidth, window.innerHeight]").await;
  let [content, width, height] = [0, 1, 2].map(|n| sizes[n].as_f64().unwrap());
  assert!(content <= width, "{sizes}");
  for selector in [OWNER, AGENT, "[data-testid=composer]"] {
    let (left, _, wide, _) = browser.place(selector).await;
    assert!(left >= 0.0 && left + wide <= width, "{selector}: {left} {wide}");
  }
  let (_, top, _, high) = browser.place("[data-testid=composer]").await;
  assert!(top + high <= height, "the composer is on the screen");
  // A finger finds what it needs.
  let (_, _, wide, high) = browser.place("button[aria-label='Attach files']").await;
  assert!(wide >= 32.0 && high >= 32.0, "{wide} {high}");
}

/// The log was exchanged behind the read model: the page says that all was read anew, once, and where it says how the system is, it says why.
#[tokio::test]
async fn a_conversation_that_was_read_anew_says_so_and_why() {
  let (_model, mut product, browser) = answered("en-US", &["--window-size=1280,900"], None).await;
  browser.gone("[data-testid=folded-anew-note]").await;
  assert!(product.terminate().await.success());
  sqlx::query("UPDATE ops.log_identity SET id = gen_random_uuid()").execute(product.setup.pool()).await.unwrap();
  product.start_again().await;
  browser.reload().await;
  browser.says("[data-testid=folded-anew-note]", "Read anew").await;
  browser.shows_message("AGENT", "POSTED", "re: hello").await;
  browser.click("[aria-haspopup=menu]").await;
  browser.click("[role=menuitem]:nth-of-type(2)").await;
  browser.says("[data-testid=folded-anew]", "comes from log").await;
  browser.reload().await;
  browser.click("[data-testid=folded-anew-note] button").await;
  browser.reload().await;
  browser.shows_message("AGENT", "POSTED", "re: hello").await;
  browser.gone("[data-testid=folded-anew-note]").await;
}
