//! Settings: one version after the other, and only values that can be used.

use super::{Effort, SettingsGiven};
use crate::codes::reason;
use crate::meta::Origin;
use crate::testing::{TestAgent, inputs};

fn on(version: i64) -> SettingsGiven {
  SettingsGiven { version, ..SettingsGiven::default() }
}

/// Proves RUN-42, SID-19.
#[test]
fn what_is_given_changes_and_the_rest_stays() {
  let mut agent = TestAgent::alive();
  let given = SettingsGiven { time_zone: Some("Asia/Shanghai".to_owned()), effort: Some(Effort::High), concurrency: Some(8), ..on(1) };
  agent.when(given).then_types(&["SettingsChanged"]);
  let settings = agent.root.settings.clone().unwrap();
  assert_eq!((settings.version, settings.time_zone.as_str(), settings.effort, settings.concurrency), (2, "Asia/Shanghai", Effort::High, 8));
  assert_eq!((settings.name.as_str(), settings.avatar.as_str()), ("Hugo", "builtin:hugo"));
  let rest = SettingsGiven {
    language: Some("zh-CN".to_owned()),
    model: Some("large".to_owned()),
    name: Some(" 小明 ".to_owned()),
    avatar: Some("file:0b5f-1".to_owned()),
    ..on(2)
  };
  agent.when(rest).then_types(&["SettingsChanged"]);
  let settings = agent.root.settings.clone().unwrap();
  assert_eq!((settings.version, settings.language.as_str(), settings.model.as_str(), settings.name.as_str()), (3, "zh-CN", "large", "小明"));
  assert_eq!(settings.time_zone, "Asia/Shanghai");
}

#[test]
fn a_change_on_an_older_version_is_refused() {
  let mut agent = TestAgent::alive();
  agent.when(SettingsGiven { concurrency: Some(4), ..on(1) }).then_types(&["SettingsChanged"]);
  agent.when(SettingsGiven { concurrency: Some(5), ..on(1) }).then_refused(reason::STATE_CHANGED);
  agent.when(SettingsGiven { concurrency: Some(5), ..on(3) }).then_refused(reason::STATE_CHANGED);
}

#[test]
fn the_same_settings_again_are_no_change() {
  let mut agent = TestAgent::alive();
  agent.when(on(1)).then_unchanged(reason::ALREADY_DONE);
  agent.when(SettingsGiven { name: Some("Hugo ".to_owned()), concurrency: Some(3), ..on(1) }).then_unchanged(reason::ALREADY_DONE);
}

#[test]
fn a_value_that_can_not_be_used_is_refused() {
  let bad = [
    SettingsGiven { time_zone: Some("Asia/Atlantis".to_owned()), ..on(1) },
    SettingsGiven { time_zone: Some("+08:00".to_owned()), ..on(1) },
    SettingsGiven { language: Some("de".to_owned()), ..on(1) },
    SettingsGiven { concurrency: Some(0), ..on(1) },
    SettingsGiven { concurrency: Some(9), ..on(1) },
    SettingsGiven { name: Some("  ".to_owned()), ..on(1) },
    SettingsGiven { name: Some("x".repeat(65)), ..on(1) },
    SettingsGiven { name: Some("a\u{7}".to_owned()), ..on(1) },
    SettingsGiven { model: Some("m".repeat(129)), ..on(1) },
    SettingsGiven { avatar: Some("hugo".to_owned()), ..on(1) },
    SettingsGiven { avatar: Some("builtin:".to_owned()), ..on(1) },
    SettingsGiven { avatar: Some("file:../secret".to_owned()), ..on(1) },
  ];
  for given in bad {
    let mut agent = TestAgent::alive();
    agent.when(given).then_refused(reason::VALUE_INVALID);
  }
}

#[test]
fn empty_takes_zone_language_and_model_back() {
  let mut agent = TestAgent::alive();
  agent.when(SettingsGiven { time_zone: Some("Europe/Berlin".to_owned()), language: Some("en".to_owned()), model: Some("m".to_owned()), ..on(1) });
  agent.when(SettingsGiven { time_zone: Some(String::new()), language: Some(String::new()), model: Some(String::new()), ..on(2) });
  let settings = agent.root.settings.unwrap();
  assert_eq!((settings.time_zone.as_str(), settings.language.as_str(), settings.model.as_str()), ("", "", ""));
}

#[test]
fn only_the_owner_changes_settings() {
  for origin in [Origin::Agent, Origin::Tool, Origin::ThirdParty, Origin::Platform] {
    TestAgent::alive().when_from(origin, SettingsGiven { concurrency: Some(4), ..on(1) }).then_refused(reason::NOT_ALLOWED);
  }
  TestAgent::absent().when(inputs::create("Ada")).then_types(&["AgentCreated", "ConversationOpened", "SettingsChanged"]);
}
