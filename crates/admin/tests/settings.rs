//! Verbs that set what holds until the next start, as Cassandra 5.0.9 answered them.

use crate::common::{Fake, say_with};

use admin::{Command, VerbError};

/// What a command line prints and does, however far it gets.
fn say(line: &str) -> (u8, String, Vec<String>) {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    match Command::parse(&words) {
        Ok(_) => {
            let (reply, done) = say_with(Fake::default(), line);
            (reply.exit, reply.out + &reply.err, done)
        }
        Err(e) => (VerbError::exit_code(&e), e.text(), Vec::new()),
    }
}

fn bad(message: &str) -> (u8, String, Vec<String>) {
    let text = format!("nodetool: {message}\nSee 'nodetool help' or 'nodetool help <command>'.\n");
    (1, text, Vec::new())
}

#[test]
fn caches_of_roles_are_shown_and_set() {
    let shown =
        "Validity Period: 2000\nUpdate Interval: 2000\nMax Entries: 1000\nActive Update: false\n";
    for cache in ["CredentialsCache", "PermissionsCache", "RolesCache"] {
        let line = format!("getauthcacheconfig --cache-name {cache}");
        assert_eq!(say(&line), (0, shown.to_owned(), Vec::new()));
    }
    let set = "setauthcacheconfig --cache-name PermissionsCache";
    let all = format!(
        "{set} --validity-period 3000 --update-interval 1000 --max-entries 500 \
         --enable-active-update"
    );
    let (code, out, done) = say(&all);
    let changed = "Changed Validity Period to 3000\nChanged Update Interval to 1000\n\
                   Changed Max Entries to 500\nChanged Active Update to true\n";
    assert_eq!((code, out.as_str()), (0, changed));
    assert!(done[0].starts_with("Permissions AuthCacheChange"), "{done:?}");
    let (_, out, _) = say(&format!("{set} --disable-active-update"));
    assert_eq!(out, "Changed Active Update to false\n");
    for (line, message) in [
        ("getauthcacheconfig", "Required option '--cache-name' is missing"),
        ("setauthcacheconfig", "Required option '--cache-name' is missing"),
        (set, "At least one optional parameter need to be passed"),
        ("getauthcacheconfig --cache-name nosuch", "Unknown cache name: nosuch"),
        ("setauthcacheconfig --cache-name nosuch --max-entries 5", "Unknown cache name: nosuch"),
        (
            "setauthcacheconfig --cache-name RolesCache --max-entries abc",
            "max-entries: can not convert \"abc\" to a Integer",
        ),
        (
            "setauthcacheconfig --cache-name RolesCache --enable-active-update \
             --disable-active-update",
            "enable-active-update and disable-active-update cannot be used together",
        ),
    ] {
        assert_eq!(say(line), bad(message), "{line}");
    }
    let (code, out, _) = say("getauthcacheconfig --cache-name NetworkPermissionsCache");
    let text =
        "nodetool: getauthcacheconfig --cache-name NetworkPermissionsCache is not supported\n";
    assert_eq!((code, out.as_str()), (2, text));
}

#[test]
fn what_is_set_is_told_to_the_node() {
    for (line, done) in [
        ("setdefaultrf 3", "default rf 3"),
        ("replaybatchlog", "replay"),
        ("disableoldprotocolversions", "older protocols false"),
        ("enableoldprotocolversions", "older protocols true"),
    ] {
        assert_eq!(say(line), (0, String::new(), vec![done.to_owned()]), "{line}");
    }
    for (line, message) in [
        ("setdefaultrf", "Required parameters are missing: default_rf"),
        ("setdefaultrf abc", "default_rf: can not convert \"abc\" to a Integer"),
        ("replaybatchlog extra", "Found unexpected parameters: [extra]"),
        ("enableoldprotocolversions extra", "Found unexpected parameters: [extra]"),
        ("datapaths -F xml k1", "arguments for -F are yaml and json only."),
    ] {
        assert_eq!(say(line), bad(message), "{line}");
    }
    let none = format!("Current snapshot throttle: {} links/s\n", i64::MAX);
    assert_eq!(say("getsnapshotthrottle").1, none);
    let json = "{\n  \"k1\" : {\n    \"t\" : [ \"/data/k1/t-1\" ]\n  }\n}\n";
    assert_eq!(say("datapaths -F json k1.t").1, json);
    assert_eq!(say("datapaths -F yaml k1.t").1, "k1:\n  t:\n  - /data/k1/t-1\n\n");
}

#[test]
fn the_doctor_says_what_it_found_and_exits_so() {
    let text = "warn node_down: 10.0.0.2: it does not answer\n    \
                why: Its data has one replica less.\n    fix: start it\n\
                0 serious, 1 warnings, 0 notes; 1 checks found nothing to change.\n\
                Not here, or not shown: steal.\n";
    assert_eq!(say("doctor"), (0, text.to_owned(), Vec::new()));
    let (_, json, _) = say("doctor --json");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["findings"][0]["severity"], "warn");
    let fake = Fake::default();
    fake.drained.set(true);
    let (reply, _) = say_with(fake, "--format json doctor");
    assert_eq!(reply.exit, 1);
    let json: serde_json::Value = serde_json::from_str(&reply.out).unwrap();
    assert_eq!(json["doctor"]["findings"][0]["severity"], "serious");
}
