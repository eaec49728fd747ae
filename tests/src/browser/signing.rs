//! Signing in and out as a person does it: the screen that says how, the menu that ends it, in every tab.

use fantoccini::Locator;

use super::Browser;
use crate::harness::{Model, Product, Setup};

const SIGNED_OUT: &str = "[data-testid=signed-out]";

async fn choose(browser: &Browser, entry: &str) {
  browser.click("[aria-haspopup=menu]").await;
  browser.click(&format!("[data-testid={entry}]")).await;
}

/// Signs in by a fresh link.
async fn sign_in_again(browser: &Browser, product: &Product) {
  let link = product.tool(&["token", "link"]);
  browser.client.goto(link.out.trim()).await.unwrap();
  browser.find("form button").await.click().await.unwrap();
  browser.find("#composer").await;
}

/// A tab that is looked at again asks by itself whether it is signed in, so its button may be gone before it can be pressed.
async fn press_if_still_there(browser: &Browser, selector: &str) {
  if let Ok(button) = browser.client.find(Locator::Css(selector)).await
    && let Err(error) = button.click().await
  {
    assert!(error.is_stale_element_reference(), "{error}");
  }
}

/// Whoever presses the button without having signed in is told so, and how to do it.
#[tokio::test]
async fn a_browser_that_is_not_signed_in_is_told_how_and_that_it_is_not() {
  let product = Setup::new().await.start().await;
  let browser = Browser::start().await;
  browser.client.goto(&product.url).await.unwrap();
  browser.says(SIGNED_OUT, "target/release/pa token link").await;
  browser.says(SIGNED_OUT, "once, for an hour").await;
  assert_eq!(browser.find("[data-testid=sign-in-answer]").await.text().await.unwrap(), "");
  browser.click(&format!("{SIGNED_OUT} button")).await;
  browser.says("[data-testid=sign-in-answer]", "not signed in yet").await;
}

/// A sign-out ends this browser's session in all its tabs at once; a sign-out everywhere asks first, and leaves the owner's token alone.
#[tokio::test]
async fn a_sign_out_shows_the_sign_in_screen_in_every_tab_at_once() {
  let model = Model::echo().await;
  let product = Setup::new().await.model(&model).start().await;
  let browser = Browser::start().await;
  browser.sign_in(&product).await;
  browser.say("before").await;
  browser.shows_message("AGENT", "POSTED", "re: before").await;
  browser.open_tab(&product.url).await;

  choose(&browser, "sign-out").await;
  browser.find(SIGNED_OUT).await;
  browser.go_to_tab(0).await;
  browser.find(SIGNED_OUT).await;
  assert_eq!(browser.shown().await, []);
  browser.client.refresh().await.unwrap();
  browser.find(SIGNED_OUT).await;

  sign_in_again(&browser, &product).await;
  browser.shows_message("AGENT", "POSTED", "re: before").await;
  browser.go_to_tab(1).await;
  press_if_still_there(&browser, &format!("{SIGNED_OUT} button")).await;
  browser.shows_message("AGENT", "POSTED", "re: before").await;

  choose(&browser, "sign-out-everywhere").await;
  browser.says("[data-testid=sign-out-panel]", "Every browser").await;
  browser.click("[data-testid=sign-out-confirm]").await;
  browser.find(SIGNED_OUT).await;
  browser.go_to_tab(0).await;
  browser.find(SIGNED_OUT).await;
  product.owner().send("the token still counts").await.id();
}
