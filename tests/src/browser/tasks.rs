//! Background tasks on the page: rows, details, cards, files, as a person meets them. The worker, the log and the model's protocol are real; the outside effects go to a
//! server of the test.

use pa_model::rehearsal::{Hold, Reply, Seen};
use serde_json::{Value, json};

use super::Browser;
use crate::harness::{Effects, Model, Outside, Product, Setup, eventually, text_of_last};

/// What the outside was asked to do.
fn done(outside: &Effects) -> Vec<Value> {
  outside.taken().into_iter().map(|effect| effect["action"].clone()).collect()
}

fn is_task(seen: &Seen) -> bool {
  offers(seen, "pa_finish")
}

fn offers(seen: &Seen, tool: &str) -> bool {
  seen.body["tools"].as_array().is_some_and(|tools| tools.iter().any(|offered| offered["function"]["name"] == tool))
}

/// How many results of tools stand behind the last words of the user.
fn results(seen: &Seen) -> usize {
  seen.messages().iter().rev().take_while(|message| message["role"] != "user").filter(|message| message["role"] == "tool").count()
}

fn call(tool: &str, arguments: &Value) -> Reply {
  Reply::new().call("c0", tool, &arguments.to_string())
}

fn finish(result: &str) -> Reply {
  call("pa_finish", &json!({ "result": result }))
}

/// A model that starts a task with the words of each message, and tells results in its own.
async fn starting() -> Model {
  let model = Model::silent().await;
  model.script.on(|seen| seen.system_text().contains("The last message is the result of a background task").then(|| Reply::text("The task is done.")));
  model.script.on(|seen| {
    let is_new = !is_task(seen) && offers(seen, "pa_task_start");
    is_new.then(|| match results(seen) {
      0 => call("pa_task_start", &json!({ "request_key": "k", "title": text_of_last(seen), "goal": format!("{}, please.", text_of_last(seen)) })),
      _ => Reply::text("It has begun."),
    })
  });
  model
}

async fn product(model: &Model, outside: Option<&Effects>) -> Product {
  let setup = Setup::new().await.model(model);
  let setup = match outside {
    Some(outside) => setup.env("PA__TESTING__EFFECTS_URL", &outside.url()),
    None => setup,
  };
  setup.start().await
}

/// Another browser's way in.
fn fresh_link(product: &Product) -> String {
  let made = product.tool(&["token", "link"]);
  made.out.lines().find(|line| line.starts_with("http")).unwrap_or_else(|| panic!("a link: {}{}", made.out, made.err)).trim().to_owned()
}

impl Browser {
  /// The state of the only task's row, once it is this one.
  async fn row_is(&self, state: &str) {
    self.find(&format!("[data-testid=task-row][data-state={state}]")).await;
  }

  /// Kinds and states of the entries of the open task.
  async fn entries(&self) -> Vec<(String, String)> {
    let script = "return [...document.querySelectorAll('[data-testid=task] [data-testid=entry]')].map((entry) => [entry.dataset.kind, entry.dataset.status])";
    let found = self.run(script).await;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    found.as_array().expect("a list").iter().map(|entry| (text(&entry[0]), text(&entry[1]))).collect()
  }

  async fn count(&self, selector: &str) -> u64 {
    self.run(&format!("return document.querySelectorAll({}).length", json!(selector))).await.as_u64().expect("a number")
  }
}

/// Without tasks nothing of tasks is shown. One that is started stands as a row, opens with what it did, is paused and goes on, and its end is told.
///
/// Proves USE-5, USE-8, USE-30, RUN-3, RUN-5, TOP-3, SID-2.
#[tokio::test]
async fn a_task_is_seen_opened_paused_and_done() {
  let model = starting().await;
  let hold = Hold::new();
  let held = hold.clone();
  model.script.on(move |seen| {
    is_task(seen).then(|| match results(seen) {
      0 => Reply::new().say("I note the plan first.").call("c0", "pa_checkpoint", &json!({ "notes": "two offers to go" }).to_string()),
      1 if !seen.body["messages"].to_string().contains("resumed") => {
        Reply::new().say("Comparing ").hold(&held).call("c1", "pa_finish", &json!({ "result": "Take the **second** offer." }).to_string())
      }
      _ => finish("Take the **second** offer."),
    })
  });
  let product = product(&model, None).await;
  let browser = Browser::start().await;
  browser.sign_in(&product).await;
  assert_eq!(browser.count("[data-testid=work],[data-testid=open-work],[data-testid=needs],[data-testid=indicator]").await, 0);
  browser.say("Compare the offers").await;
  browser.shows_message("AGENT", "POSTED", "It has begun.").await;
  browser.row_is("RUNNING").await;
  hold.reached().await;
  browser.find("[data-testid=indicator][data-kind=running]").await;

  browser.click("[data-testid=task-row] .task-row-open").await;
  browser.says("[data-testid=task]", "Compare the offers, please.").await;
  assert_eq!(browser.count("[data-testid=task] textarea").await, 0, "details have no composer");
  eventually("the steps so far stand in order", async || {
    let kinds: Vec<String> = browser.entries().await.into_iter().map(|(kind, _)| kind).collect();
    (kinds == ["GOAL", "WORDS", "TOOL", "CHECKPOINT"]).then_some(())
  })
  .await;
  browser.click("[data-testid=pause]").await;
  browser.find("[data-testid=task-head][data-state=PAUSED]").await;
  browser.click("[data-testid=resume]").await;
  hold.release();
  browser.find("[data-testid=task-head][data-state=COMPLETED]").await;
  browser.says("[data-testid=task] [data-kind=RESULT]", "Take the second offer.").await;
  let live = browser.entries().await;
  assert_eq!(browser.count("[data-testid=stop-task],[data-testid=pause]").await, 0, "nothing to stop any more");

  // Back to the conversation with the beginning of a message about it.
  browser.click("[data-testid=say]").await;
  browser.gone("[data-testid=task]").await;
  eventually("the composer has the task's name", async || {
    let text = browser.run("return document.activeElement.id === 'composer' ? document.activeElement.value : ''").await;
    text.as_str().is_some_and(|text| text.contains("Compare the offers")).then_some(())
  })
  .await;
  browser.shows_message("AGENT", "POSTED", "The task is done.").await;
  browser.row_is("COMPLETED").await;

  browser.reload().await;
  browser.click("[data-testid=task-row] .task-row-open").await;
  browser.find("[data-testid=task] [data-kind=RESULT]").await;
  assert_eq!(browser.entries().await, live, "the same after a reload");
}

/// The stop of a row shows when the row is pointed at or has the focus, and a press ends the task.
///
/// Proves USE-9, USE-10.
#[tokio::test]
async fn a_row_of_an_open_task_has_a_stop_at_its_end() {
  let model = starting().await;
  let hold = Hold::new();
  let held = hold.clone();
  model.script.on(move |seen| is_task(seen).then(|| Reply::new().say("working ").hold(&held).say("on")));
  let product = product(&model, None).await;
  {
    let phone = Browser::with("en-US", &[], Some((390, 844))).await;
    phone.sign_in(&product).await;
    phone.say("Wait").await;
    phone.click("[data-testid=open-work]").await;
    phone.row_is("RUNNING").await;
    assert_eq!(phone.style("[data-testid=task-stop]", "opacity").await, "1", "a finger can't point");
  }
  let browser = Browser::start().await;
  browser.client.goto(&fresh_link(&product)).await.expect("the link opens");
  browser.find("form button").await.click().await.expect("the button can be pressed");
  browser.row_is("RUNNING").await;
  assert_eq!(browser.style("[data-testid=task-stop]", "opacity").await, "0");
  browser.run("document.querySelector('.task-row-open').focus()").await;
  eventually("the focus shows it", async || (browser.style("[data-testid=task-stop]", "opacity").await == "1").then_some(())).await;
  browser.click("[data-testid=task-stop]").await;
  browser.row_is("STOPPED").await;
  browser.gone("[data-testid=task-stop]").await;
  hold.release();
}

/// A card shows the whole email. It is decided once: in the other tab it goes too.
///
/// Proves USE-13, USE-14, USE-15, USE-17, SID-2.
#[tokio::test]
async fn an_email_is_shown_whole_and_sent_once_after_a_word_of_the_owner() {
  let outside = Effects::start(Outside::Accepts).await;
  let model = starting().await;
  let email = json!({ "to": ["kim@example.org", "lee@example.org"], "subject": "The numbers", "body": "Here they are:\n1,204,883.07" });
  let asked = email.clone();
  model.script.on(move |seen| is_task(seen).then(|| if results(seen) == 0 { call("pa_test_email", &asked) } else { finish("It is sent.") }));
  let product = product(&model, Some(&outside)).await;
  let browser = Browser::start().await;
  browser.sign_in(&product).await;
  browser.say("Send the numbers").await;
  for words in ["kim@example.org, lee@example.org", "The numbers", "Here they are:", "1,204,883.07", "Send the numbers"] {
    browser.says("[data-testid=action]", words).await;
  }
  assert_eq!(browser.count("[data-testid=allow-for-task]").await, 0, "each email is asked for");
  browser.find("[data-testid=indicator][data-kind=input]").await;
  browser.row_is("WAITING").await;
  assert!(done(&outside).is_empty());
  browser.open_tab(&product.url).await;
  browser.click("[data-testid=approve-once]").await;
  browser.gone("[data-testid=needs]").await;
  browser.go_to_tab(0).await;
  browser.gone("[data-testid=needs]").await;
  browser.row_is("COMPLETED").await;
  assert_eq!(done(&outside), [email]);
}

/// A batch for a computer is shown step by step, with long typed text whole. Rejected, it is not done, and the task goes on.
///
/// Proves USE-16, USE-18, USE-19, USE-20.
#[tokio::test]
async fn a_computer_batch_is_shown_step_by_step_and_a_rejected_one_is_not_done() {
  let outside = Effects::start(Outside::Accepts).await;
  let model = starting().await;
  let typed = format!("{} the end", "a long text ".repeat(10));
  let batch = json!({ "device": "Mac", "application": "Mail", "window": "Inbox", "snapshot_id": "s1",
    "steps": [{ "action": "click", "element": 4 }, { "action": "type", "text": typed }, { "action": "press", "keys": "cmd+s" }] });
  model
    .script
    .on(move |seen| is_task(seen).then(|| if results(seen) == 0 { call("pa_test_computer", &batch) } else { finish("It can't be done without that.") }));
  let product = product(&model, Some(&outside)).await;
  let browser = Browser::start().await;
  browser.sign_in(&product).await;
  browser.say("Tidy up").await;
  for words in ["Mac", "Mail", "Inbox", "click", "4", "cmd+s", &typed, "Mail on Mac"] {
    browser.says("[data-testid=action]", words).await;
  }
  assert_eq!(browser.count("[data-testid=action-steps] > li").await, 3);
  browser.find("[data-testid=allow-for-task]").await;
  browser.click("[data-testid=reject]").await;
  browser.gone("[data-testid=needs]").await;
  browser.row_is("COMPLETED").await;
  assert!(done(&outside).is_empty());
  browser.click("[data-testid=task-row] .task-row-open").await;
  browser.click("[data-testid=task] [data-kind=TOOL][data-status=SKIPPED] summary").await;
  browser.says("[data-testid=task] [data-kind=TOOL][data-status=SKIPPED]", "You rejected it.").await;
}

/// Nobody knows whether it was sent: the page shows what it was and asks, over a reload too; the owner's word lets the task go on.
///
/// Proves USE-23, USE-24, SID-13.
#[tokio::test]
async fn an_unknown_outcome_is_asked_about_until_the_owner_says() {
  let outside = Effects::start(Outside::Drops).await;
  let model = starting().await;
  let email = json!({ "to": ["kim@example.org"], "subject": "Once only", "body": "Hello" });
  model.script.on(move |seen| is_task(seen).then(|| if results(seen) == 0 { call("pa_test_email", &email) } else { finish("Settled.") }));
  let product = product(&model, Some(&outside)).await;
  let browser = Browser::start().await;
  browser.sign_in(&product).await;
  browser.say("Send it once").await;
  browser.click("[data-testid=approve-once]").await;
  browser.says("[data-testid=action][data-state=UNKNOWN]", "Once only").await;
  browser.find("[data-testid=notice][data-code=CALL_UNKNOWN]").await;
  browser.reload().await;
  browser.says("[data-testid=action][data-state=UNKNOWN]", "Once only").await;
  browser.click("[data-testid=not-executed]").await;
  browser.gone("[data-testid=needs]").await;
  browser.row_is("COMPLETED").await;
  assert_eq!(done(&outside).len(), 1, "it was not tried again by itself");
}

/// A file that a task hands over stands in the conversation while the task goes on, and in the outputs; it can be looked at and fetched, after a reload too.
///
/// Proves DEL-2, DEL-3, DEL-4, DEL-21, RUN-32, RUN-40.
#[tokio::test]
async fn a_delivered_file_is_a_card_in_the_conversation_and_an_output() {
  let model = starting().await;
  let hold = Hold::new();
  let held = hold.clone();
  model.script.on(move |seen| {
    is_task(seen).then(|| match results(seen) {
      0 => call("pa_write_file", &json!({ "path": "report.md", "content": "# Report\n\nAll is well: <b>42</b>." })),
      1 => call("pa_deliver", &json!({ "request_key": "report-1", "path": "report.md", "filename": "the report.md", "caption": "The report is ready." })),
      _ => Reply::new().say("Finishing ").hold(&held).call("c2", "pa_finish", &json!({ "result": "Done." }).to_string()),
    })
  });
  let product = product(&model, None).await;
  let browser = Browser::start().await;
  browser.sign_in(&product).await;
  browser.say("Write a report").await;
  browser.shows_message("AGENT", "POSTED", "The report is ready.").await;
  browser.row_is("RUNNING").await;
  let cards = "[data-testid=messages] [data-testid=file]";
  browser.says(cards, "the report.md").await;
  browser.says("[data-testid=output]", "the report.md").await;
  browser.says("[data-testid=output]", "Write a report").await;
  // Shown as the text that it is, not drawn.
  browser.click("[data-testid=messages] [data-testid=preview-file]").await;
  browser.says("[data-testid=preview]", "All is well: <b>42</b>.").await;
  browser.click("[data-testid=preview] button").await;
  browser.gone("[data-testid=preview]").await;
  hold.release();
  browser.row_is("COMPLETED").await;
  browser.shows_message("AGENT", "POSTED", "The task is done.").await;
  browser.reload().await;
  browser.says(cards, "the report.md").await;
  assert_eq!((browser.count(cards).await, browser.count("[data-testid=output]").await), (1, 1), "the end sends nothing again");
  let text = browser.run(&format!("return fetch(document.querySelector({}).href).then((answer) => answer.text())", json!(cards))).await;
  assert_eq!(text, "# Report\n\nAll is well: <b>42</b>.");
}
