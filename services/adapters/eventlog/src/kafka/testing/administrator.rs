//! What the administrator of a cluster may do to our topics behind our back.

use futures::executor::block_on;
use rdkafka::admin::{AdminClient, AdminOptions, AlterConfig, ConfigEntry, ConfigResource, NewTopic, ResourceSpecifier, TopicReplication};
use tokio::time::{Duration, Instant};

use crate::kafka::Config;
use crate::kafka::config::Purpose;
use crate::kafka::context::Quiet;

/// The other broker or controller hears of a change a moment later.
const HEARD_WITHIN: Duration = Duration::from_secs(20);

/// The administrator of the topics with one prefix.
pub struct Administrator {
  admin: AdminClient<Quiet>,
  prefix: String,
}

impl Administrator {
  /// Of the topics of a log.
  pub fn of(config: &Config) -> Self {
    let admin = config.client(Purpose::Control).create_with_context(Quiet).expect("a client can be made");
    Self { admin, prefix: config.prefix.clone() }
  }

  fn topic(&self, name: &str) -> String {
    format!("{}{name}", self.prefix)
  }

  fn described(&self, topic: &str) -> Option<ConfigResource> {
    let described = block_on(self.admin.describe_configs(&[ResourceSpecifier::Topic(topic)], &AdminOptions::new()));
    described.expect("the cluster answers").remove(0).ok()
  }

  /// Changes settings of a topic; the others go back to the broker's defaults, but for those that stand.
  pub fn set(&self, name: &str, settings: &[(&str, &str)]) {
    let topic = self.topic(name);
    let before = self.described(&topic).expect("the topic is there");
    let kept = before.entries.iter().filter(|entry| !entry.is_default && !settings.iter().any(|(name, _)| *name == entry.name));
    let all = kept.filter_map(|entry| Some((entry.name.as_str(), entry.value.as_deref()?))).chain(settings.iter().copied());
    let altered = all.fold(AlterConfig::new(ResourceSpecifier::Topic(&topic)), |altered, (name, value)| altered.set(name, value));
    let done = block_on(self.admin.alter_configs(&[altered], &AdminOptions::new())).expect("the cluster answers").remove(0);
    done.expect("the settings are taken");
    // The controller has taken it; the broker that answers hears of it a moment later.
    let deadline = Instant::now() + HEARD_WITHIN;
    let is = |entry: &ConfigEntry| settings.contains(&(entry.name.as_str(), entry.value.as_deref().unwrap_or_default()));
    while self.described(&topic).is_none_or(|topic| topic.entries.iter().filter(|entry| is(entry)).count() < settings.len()) {
      assert!(Instant::now() < deadline, "the new settings are not seen");
      std::thread::sleep(Duration::from_millis(50));
    }
  }

  /// Deletes a topic.
  pub fn delete(&self, name: &str) {
    let topic = self.topic(name);
    let options = AdminOptions::new().operation_timeout(Some(Duration::from_secs(10)));
    block_on(self.admin.delete_topics(&[&topic], &options)).expect("the cluster answers").remove(0).expect("the topic was there");
  }

  /// Makes a topic with the broker's defaults.
  pub async fn make(&self, name: &str, partitions: i32) {
    let topic = self.topic(name);
    let new = NewTopic::new(&topic, partitions, TopicReplication::Fixed(1));
    let deadline = Instant::now() + HEARD_WITHIN;
    // The name is free a moment after the deletion.
    while let Err((_, code)) = block_on(self.admin.create_topics([&new], &AdminOptions::new())).expect("the cluster answers").remove(0) {
      assert!(Instant::now() < deadline, "{code}");
      tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // The broker answers with what it has heard of the deletion and of the new topic.
    while !self.has_defaults(&topic) {
      assert!(Instant::now() < deadline, "the new topic is not seen");
      tokio::time::sleep(Duration::from_millis(100)).await;
    }
  }

  fn has_defaults(&self, topic: &str) -> bool {
    self.described(topic).is_some_and(|described| described.get("delete.retention.ms").is_some_and(|entry| entry.is_default))
  }
}
