//! What was found, as text and as JSON.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::checks::{ALL, Check, Severity};

/// One thing to change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The check's name.
    pub id: Cow<'static, str>,
    /// How serious it is.
    pub severity: Severity,
    /// The device, directory, card or setting.
    pub subject: String,
    /// What was found.
    pub found: String,
    /// Why it matters.
    pub why: Cow<'static, str>,
    /// What to do about it.
    pub fix: String,
}

/// What an examination gave.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// What to change, most serious first.
    pub findings: Vec<Finding>,
    /// Checks that found nothing to change.
    pub ok: Vec<Cow<'static, str>>,
    /// Checks of which this machine does not show enough.
    pub unknown: Vec<Cow<'static, str>>,
}

impl Report {
    /// Is anything serious?
    pub fn is_serious(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == Severity::Serious)
    }

    /// Judges a fact. `judge` says what is wrong with it.
    pub(crate) fn look<T>(
        &mut self,
        check: &'static Check,
        subject: &str,
        fact: Option<T>,
        judge: impl FnOnce(T) -> Option<String>,
    ) {
        let Some(fact) = fact else { return };
        if !self.ok.iter().any(|id| id == check.id) {
            self.ok.push(check.id.into());
        }
        let Some(found) = judge(fact) else { return };
        let is_known = |f: &Finding| f.id == check.id && f.subject == subject;
        if self.findings.iter().any(is_known) {
            return;
        }
        self.findings.push(Finding {
            id: check.id.into(),
            severity: check.severity,
            subject: subject.to_owned(),
            found,
            why: check.why.into(),
            fix: check.fix.replace("{subject}", subject),
        });
    }

    /// Orders the findings, and says what was not looked at.
    pub(crate) fn finish(mut self) -> Self {
        self.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        let looked = std::mem::take(&mut self.ok);
        let has = |id: &str| self.findings.iter().any(|finding| finding.id == id);
        for check in ALL {
            if !looked.iter().any(|id| id == check.id) {
                self.unknown.push(check.id.into());
            } else if !has(check.id) {
                self.ok.push(check.id.into());
            }
        }
        self
    }

    /// The report for programs.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            let Finding { id, severity, subject, found, why, fix } = finding;
            writeln!(f, "{} {id}: {subject}: {found}", severity.word())?;
            writeln!(f, "    why: {why}")?;
            writeln!(f, "    fix: {fix}")?;
        }
        let count = |severity| self.findings.iter().filter(|f| f.severity == severity).count();
        writeln!(
            f,
            "{} serious, {} warnings, {} notes; {} checks found nothing to change.",
            count(Severity::Serious),
            count(Severity::Warn),
            count(Severity::Note),
            self.ok.len()
        )?;
        if !self.unknown.is_empty() {
            writeln!(f, "Not here, or not shown: {}.", self.unknown.join(", "))?;
        }
        Ok(())
    }
}
