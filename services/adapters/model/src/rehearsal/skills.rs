//! What the rehearsal model can do: a table of (name, hint, match, answer). A new skill is a new row; the help text is made of the
//! rows' hints, and the first row that matches answers.

use super::ask::{Ask, Language};

/// The first words of every answer: nobody may take the rehearsal for a real model.
pub(super) const INTRODUCTION: (&str, &str) = ("**Rehearsal model** (no real model is configured).", "**排练模型**(还没有配置真正的模型)。");
/// What is quoted of the user's words.
const QUOTE_CHARS_MAX: usize = 2_000;
/// Long enough to watch and to stop, short enough to end by itself.
const COUNT_MAX: u32 = 500;

struct Skill {
  /// What to type, in both languages.
  hint: (&'static str, &'static str),
  matches: fn(&Ask) -> bool,
  answer: fn(&Ask) -> String,
}

const SKILLS: &[Skill] = &[
  Skill {
    hint: ("`echo some words`: I say them back", "`重复 一些话`: 我照着说一遍"),
    matches: |ask| echoed(ask).is_some(),
    answer: |ask| quote(echoed(ask).unwrap_or_default()),
  },
  Skill {
    hint: ("`count to 100`: a long answer to watch or to stop", "`数到 100`: 一个可以观看或停止的长回答"),
    matches: |ask| counted(ask).is_some(),
    answer: |ask| (1..=counted(ask).unwrap_or(1)).map(|number| number.to_string()).collect::<Vec<_>>().join(" "),
  },
  Skill {
    hint: ("`show me a table`", "`给我看一个表格`"),
    matches: |ask| ask.mentions(&["table", "tables", "表格"]),
    answer: |ask| ask.in_language(TABLE.0, TABLE.1).to_owned(),
  },
  Skill {
    hint: ("`show me some code`", "`给我看一段代码`"),
    matches: |ask| ask.mentions(&["code", "代码"]),
    answer: |ask| ask.in_language(CODE.0, CODE.1).to_owned(),
  },
  Skill {
    hint: ("`what time is it?`: the time that the prompt gives me", "`现在几点?`: 提示里告诉我的时间"),
    matches: |ask| ask.mentions(&["what time", "the time", "what day", "what date", "几点", "时间", "几号", "星期几"]),
    answer: time,
  },
  Skill {
    hint: ("attach a file: I name what has reached me", "附上一个文件: 我列出收到了什么"),
    matches: |ask| !ask.attachments.is_empty() || ask.pictures > 0 || ask.mentions(&["attachment", "attachments", "附件"]),
    answer: attachments,
  },
  Skill {
    hint: ("`show me a list`", "`给我看一个列表`"),
    matches: |ask| ask.mentions(&["list", "lists", "列表"]),
    answer: |ask| ask.in_language(LIST.0, LIST.1).to_owned(),
  },
  Skill {
    hint: ("`what did I say before?`: what I see of our conversation", "`我之前说了什么?`: 我看到的对话内容"),
    matches: |ask| ask.mentions(&["did i say", "i said before", "remember", "之前说", "刚才说", "记得"]),
    answer: history,
  },
  Skill {
    hint: ("`help`: this list", "`帮助`: 这个列表"),
    matches: |ask| ask.words.is_empty() || ask.mentions(&["help", "hello", "hi", "what can you do", "帮助", "你好", "能做什么", "会什么"]),
    answer: help,
  },
];

/// Answers like a model would, introduction included.
pub(super) fn answer(ask: &Ask) -> String {
  let said = SKILLS.iter().find(|skill| (skill.matches)(ask)).map_or_else(|| unknown(ask), |skill| (skill.answer)(ask));
  format!("{}\n\n{said}", ask.in_language(INTRODUCTION.0, INTRODUCTION.1))
}

fn help(ask: &Ask) -> String {
  let mut lines = vec![ask.in_language("I can't think, but these work:", "我不会思考,不过可以试试这些:").to_owned(), String::new()];
  lines.extend(SKILLS.iter().map(|skill| format!("- {}", ask.in_language(skill.hint.0, skill.hint.1))));
  let model = ask.in_language(
    "For real answers set `PA_MODEL_BASE_URL`, `PA_MODEL_NAME` and `PA_MODEL_API_KEY`, then start again.",
    "想要真正的回答,请设置 `PA_MODEL_BASE_URL`、`PA_MODEL_NAME` 和 `PA_MODEL_API_KEY`,然后重新启动。",
  );
  lines.extend([String::new(), model.to_owned()]);
  lines.join("\n")
}

fn unknown(ask: &Ask) -> String {
  let said = quote(&ask.words);
  match ask.language {
    Language::English => {
      format!("You wrote: “{said}”\n\nType `help` to see what can be tried.")
    }
    Language::Chinese => format!("你写的是:“{said}”\n\n输入 `帮助` 看看可以试什么。"),
  }
}

fn echoed(ask: &Ask) -> Option<&str> {
  let words = ask.words.trim();
  ["echo ", "say ", "repeat ", "重复", "请说"].iter().find_map(|verb| {
    let start = words.get(..verb.len())?;
    let rest = words[verb.len()..].trim_start_matches([' ', ':', ':']);
    (start.eq_ignore_ascii_case(verb) && !rest.is_empty()).then_some(rest)
  })
}

fn counted(ask: &Ask) -> Option<u32> {
  let words = ask.words.to_lowercase();
  let at = ["count to ", "count up to ", "数到"].iter().find_map(|verb| Some(words.find(verb)? + verb.len()))?;
  let digits: String = words[at..].trim_start().chars().take_while(char::is_ascii_digit).collect();
  Some(digits.parse().unwrap_or(COUNT_MAX).clamp(1, COUNT_MAX))
}

fn time(ask: &Ask) -> String {
  let line = ask.system.lines().find(|line| has_time(line)).map(str::trim);
  match (line, ask.language) {
    (Some(line), Language::English) => format!("The prompt tells me: {line}"),
    (Some(line), Language::Chinese) => format!("提示里写着:{line}"),
    (None, Language::English) => "The prompt does not tell me the time, and I have no clock.".to_owned(),
    (None, Language::Chinese) => "提示里没有告诉我时间,我自己也没有时钟。".to_owned(),
  }
}

/// Finds `2025-01-31T12:30` or the same with a space, anywhere in a line.
fn has_time(line: &str) -> bool {
  const SHAPE: &[u8] = b"dddd-dd-dd dd:dd";
  line.as_bytes().windows(SHAPE.len()).any(|window| {
    window.iter().zip(SHAPE).all(|(byte, shape)| match shape {
      b'd' => byte.is_ascii_digit(),
      b' ' => matches!(byte, b' ' | b'T'),
      other => byte == other,
    })
  })
}

fn attachments(ask: &Ask) -> String {
  if ask.attachments.is_empty() && ask.pictures == 0 {
    return ask.in_language("No attachment has reached me.", "我没有收到附件。").to_owned();
  }
  let mut lines = vec![ask.in_language("This has reached me:", "我收到了:").to_owned(), String::new()];
  lines.extend(ask.attachments.iter().map(|name| format!("- `{}`", quote(name).replace('`', "'"))));
  if ask.pictures > 0 {
    lines.push(match ask.language {
      Language::English => format!("- pictures to look at: {}", ask.pictures),
      Language::Chinese => format!("- 可以看的图片:{} 张", ask.pictures),
    });
  }
  lines.join("\n")
}

fn history(ask: &Ask) -> String {
  if ask.earlier.is_empty() {
    return ask.in_language("This is the first message that I see.", "这是我看到的第一条消息。").to_owned();
  }
  let mut lines = vec![ask.in_language("Before this message you wrote:", "在这条消息之前你写过:").to_owned(), String::new()];
  lines.extend(ask.earlier.iter().enumerate().map(|(at, said)| format!("{}. {}", at + 1, quote(said.lines().next().unwrap_or("")))));
  lines.join("\n")
}

fn quote(words: &str) -> String {
  words.chars().take(QUOTE_CHARS_MAX).collect()
}

const TABLE: (&str, &str) = (
  "| Planet | Moons | Day in hours |\n|---|---:|---:|\n| Earth | 1 | 24 |\n| Mars | 2 | 24.6 |\n| Jupiter | 95 | 9.9 |",
  "| 行星 | 卫星 | 一天(小时) |\n|---|---:|---:|\n| 地球 | 1 | 24 |\n| 火星 | 2 | 24.6 |\n| 木星 | 95 | 9.9 |",
);
const CODE: (&str, &str) = (
  "A small program:\n\n```rust\nfn main() {\n    println!(\"Hello from the rehearsal\");\n}\n```\n\nand `inline` code.",
  "一个小程序:\n\n```rust\nfn main() {\n    println!(\"来自排练的问候\");\n}\n```\n\n还有 `行内` 代码。",
);
const LIST: (&str, &str) = (
  "1. First, *in italics*\n2. Second, **in bold**\n   - with a point\n   - and another\n3. Third, with a [link](https://example.org)\n\n> and a quote.",
  "1. 第一,*斜体*\n2. 第二,**粗体**\n   - 一个小点\n   - 又一个\n3. 第三,带[链接](https://example.org)\n\n> 和一段引用。",
);

#[cfg(test)]
mod tests {
  use super::*;
  use serde_json::json;

  fn said(words: &str) -> String {
    answer(&Ask::read(&json!({"messages": [
        {"role": "system", "content": "Rules.\nNow: 2031-05-06T07:08:09+02:00 (Europe/Berlin)"},
        {"role": "user", "content": "my cat is called Ada"},
        {"role": "assistant", "content": "Noted."},
        {"role": "user", "content": words},
    ]})))
  }

  #[test]
  fn every_answer_begins_by_saying_what_it_is() {
    for words in ["help", "show me a table", "echo x", "", "anything else"] {
      assert!(said(words).starts_with(INTRODUCTION.0), "{words}");
    }
    for words in ["帮助", "给我看一个表格", "重复 好", "别的什么"] {
      assert!(said(words).starts_with(INTRODUCTION.1), "{words}");
    }
  }

  #[test]
  fn each_skill_answers_in_the_users_language() {
    let cases = [
      ("echo Hello, World", "Hello, World"),
      ("重复:早上好", "早上好"),
      ("Please count to 5!", "1 2 3 4 5"),
      ("数到3", "1 2 3"),
      ("show me a table", "| Planet |"),
      ("给我看一个表格", "| 行星 |"),
      ("show me some code", "```rust"),
      ("a list, please", "1. First"),
      ("What time is it?", "2031-05-06T07:08:09+02:00"),
      ("现在几点?", "2031-05-06T07:08:09+02:00"),
      ("what did I say before?", "1. my cat is called Ada"),
      ("summarise\n[attachment report.pdf, application/pdf, 12 bytes]", "- `[attachment report.pdf, application/pdf, 12 bytes]`"),
      ("decode this", "You wrote: “decode this”"),
      ("help", "`show me a table`"),
      ("帮助", "`给我看一个表格`"),
    ];
    for (words, expected) in cases {
      assert!(said(words).contains(expected), "{words}: {}", said(words));
    }
  }

  #[test]
  fn every_hint_that_can_be_typed_reaches_its_skill() {
    for (row, skill) in SKILLS.iter().enumerate() {
      for hint in [skill.hint.0, skill.hint.1] {
        let Some(typed) = hint.split('`').nth(1) else {
          continue;
        };
        let ask = Ask::read(&json!({"messages": [{"role": "user", "content": typed}]}));
        assert_eq!(SKILLS.iter().position(|skill| (skill.matches)(&ask)), Some(row), "{typed}");
      }
    }
  }
}
