"""The numbers of lme4, lmerTest, pbkrtest and emmeans. Origin and tolerances: tests/golden/lmm/README.md."""

import json
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis.stats import contrasts, inference
from analysis.stats.anova import anova, hypotheses, ranova
from analysis.stats.mixed.fit import MixedFit, fit

FOLDER = Path(__file__).parents[3] / "golden" / "lmm"
GOLD = json.loads((FOLDER / "lmm.json").read_text())["lmm"]
MODELS = list(GOLD)
WITH_TERMS = [name for name in MODELS if "L_type3" in GOLD[name]]
WITH_MEANS = [name for name in MODELS if "emmeans" in GOLD[name]]
WITH_KR = [name for name in MODELS if "KR" in GOLD[name]]
KR_TERMS = [name for name in WITH_KR if GOLD[name]["KR"].get("type3")]
ADJUSTMENTS = {"none": "none", "tukey": "tukey", "holm": "holm", "bonferroni": "bonferroni", "sidak": "sidak",
               "fdr": "BH", "scheffe": "scheffe"}  # fmt: skip


@lru_cache
def fitted(name: str, method: str = "REML") -> MixedFit:
    frame = pd.read_csv(FOLDER / "data" / GOLD[name]["data"])
    return fit(frame, GOLD[name]["formula"], method=method)


def values(rows: list[dict], key: str) -> np.ndarray:
    return np.array([row[key] for row in rows], float)


def close(expected, found, rel=0.0, absolute=0.0):
    np.testing.assert_allclose(np.asarray(found, float), np.asarray(expected, float), rtol=rel, atol=absolute)


def theta_in_lme4s_order(model: MixedFit) -> np.ndarray:
    """lme4 sorts the random terms by their number of levels, the most first."""
    order = sorted(range(len(model.factors)), key=lambda k: -model.design.groupings[k].n_levels)
    lower = [model.factors[k] for k in order]
    return np.concatenate([factor.T[np.triu_indices(len(factor))] for factor in lower])


@pytest.mark.parametrize("name", MODELS)
def test_reml_criterion(name):
    close(GOLD[name]["REMLcrit"], fitted(name).criterion, absolute=1e-8)


@pytest.mark.parametrize("name", MODELS)
def test_ml_deviance_and_coefficients(name):
    gold, found = GOLD[name]["ML"], fitted(name, "ML")
    close(gold["deviance"], found.criterion, absolute=1e-8)
    close(list(gold["fixef"].values()), found.fixed, absolute=1e-6)
    close(list(gold["theta"].values()), theta_in_lme4s_order(found), rel=1e-4, absolute=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_theta_and_sigma(name):
    close(list(GOLD[name]["theta"].values()), theta_in_lme4s_order(fitted(name)), rel=1e-5, absolute=1e-7)
    close(GOLD[name]["sigma"], fitted(name).sigma, rel=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_variance_components(name):
    gold = {(row["grp"], row["var1"]): row["vcov"] for row in GOLD[name]["varcorr"] if row["var2"] is None}
    found = {(row.group, row.name): row.variance for row in fitted(name).components().itertuples(index=False)}
    for (group, column), variance in gold.items():
        group = {"Residual": "residual", "Subject.1": "Subject"}.get(group, group)
        close(variance, found[group, column or ""], rel=1e-5, absolute=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_fixed_effects_carry_r_names_and_values(name):
    gold = GOLD[name]["fixef"]
    assert list(gold) == list(fitted(name).fixed.index)
    close(list(gold.values()), fitted(name).fixed, absolute=1e-7)


@pytest.mark.parametrize("name", MODELS)
def test_covariance_of_fixed_effects(name):
    close(list(GOLD[name]["se"].values()), np.sqrt(np.diagonal(fitted(name).vcov)), rel=1e-6)
    vcov = np.array(GOLD[name]["vcov"])
    close(vcov, fitted(name).vcov, rel=1e-6, absolute=1e-6 * np.abs(vcov).max())


@pytest.mark.parametrize("name", MODELS)
def test_satterthwaite_coefficients(name):
    gold, found = GOLD[name]["coef_satterthwaite"], fitted(name).coefficients()
    close(values(gold, "df"), found["df"], rel=1e-5)
    close(values(gold, "t value"), found["statistic"], rel=1e-6, absolute=1e-7)
    close(values(gold, "Pr(>|t|)"), found["p_value"], absolute=1e-7)


@pytest.mark.parametrize("name", WITH_KR)
def test_kenward_roger_coefficients(name):
    gold, found = GOLD[name]["KR"], fitted(name).coefficients("kenward-roger")
    close(values(gold["coef"], "se"), found["std_error"], rel=2e-6)
    close(values(gold["coef"], "df"), found["df"], rel=2e-6)
    close(values(gold["coef"], "p"), found["p_value"], absolute=1e-7)


@pytest.mark.parametrize("name", WITH_KR)
def test_kenward_roger_covariance(name):
    model = fitted(name)
    carried = np.linalg.inv(model.design.fixed.triangle)
    found = carried @ inference.kenward_roger(model).covariance @ carried.T
    gold = np.array(GOLD[name]["KR"]["vcov"])
    close(gold, found, rel=2e-6, absolute=2e-6 * np.abs(gold).max())


@pytest.mark.parametrize("name", KR_TERMS)
def test_kenward_roger_f_tests(name):
    gold, found = GOLD[name]["KR"]["type3"], anova(fitted(name), 3, "kenward-roger")
    assert [row["term"] for row in gold] == list(found["term"])
    close(values(gold, "F"), found["statistic"], rel=2e-6)
    close(values(gold, "ddf"), found["df"], rel=2e-6)


@pytest.mark.parametrize("kind", [1, 2, 3])
@pytest.mark.parametrize("name", WITH_TERMS)
def test_satterthwaite_f_tests(name, kind):
    gold, found = GOLD[name][f"anova_type{kind}_satterthwaite"], anova(fitted(name), kind)
    assert [row["term"] for row in gold] == list(found["term"])
    close(values(gold, "NumDF"), found["ndf"])
    close(values(gold, "F value"), found["statistic"], rel=1e-6)
    close(values(gold, "DenDF"), found["df"], rel=1e-6)
    close(values(gold, "Sum Sq"), found["sum_sq"], rel=1e-6)
    close(values(gold, "Pr(>F)"), found["p_value"], absolute=1e-7)


@pytest.mark.parametrize("name", WITH_TERMS)
def test_type_three_hypotheses_are_lmertests(name):
    found = hypotheses(fitted(name).design.fixed, 3)
    for term, weights in GOLD[name]["L_type3"].items():
        close(weights, found[term], absolute=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_likelihood_ratio_tests_of_random_terms(name):
    gold, found = GOLD[name]["ranova"], ranova(fitted(name))
    close(values(gold, "npar"), found["n_parameters"])
    close(values(gold, "logLik"), found["log_likelihood"], absolute=1e-6)
    close(values(gold[1:], "LRT"), found["statistic"][1:], absolute=1e-6)
    close(values(gold[1:], "Pr(>Chisq)"), found["p_value"][1:], absolute=1e-7)


def _shape(name: str) -> tuple[list[str], list[str]]:
    """Factors and by-columns of the gold's means."""
    gold = GOLD[name]["emmeans"]["satterthwaite"]
    statistics = {"emmean", "SE", "df", "lower.CL", "upper.CL", "t.ratio", "p.value"}
    columns = [key for key in gold["means"][0] if key not in statistics]
    by = [key for key in columns if key in gold["pairs"]["none"][0]]
    return [key for key in columns if key not in by], by


def _matched(rows: list[dict], columns: list[str], found: pd.DataFrame, own: list[str]) -> pd.DataFrame:
    """The found rows in the order of the gold's."""
    places = {tuple(map(str, key)): i for i, key in enumerate(found[own].astype(object).to_numpy())}
    return found.iloc[[places[tuple(str(row[c]) for c in columns)] for row in rows]]


@pytest.mark.parametrize("ddf, key", [("satterthwaite", "satterthwaite"), ("z", "asymptotic")])
@pytest.mark.parametrize("name", WITH_MEANS)
def test_estimated_marginal_means(name, ddf, key):
    factors, by = _shape(name)
    gold = GOLD[name]["emmeans"][key]["means"]
    found = _matched(gold, by + factors, contrasts.means(fitted(name), factors, by=by, ddf=ddf), by + factors)
    low = "lower.CL" if ddf != "z" else "asymp.LCL"
    close(values(gold, "emmean"), found["estimate"], absolute=1e-7)
    close(values(gold, "SE"), found["std_error"], rel=1e-6)
    close(values(gold, low), found["low"], absolute=1e-6)
    if ddf != "z":
        close(values(gold, "df"), found["df"], rel=1e-5)


@pytest.mark.parametrize("adjust", ADJUSTMENTS)
@pytest.mark.parametrize("name", WITH_MEANS)
def test_pairwise_contrasts(name, adjust):
    factors, by = _shape(name)
    for ddf, key in (("satterthwaite", "satterthwaite"), ("z", "asymptotic")):
        gold = GOLD[name]["emmeans"][key]["pairs"][adjust]
        table = contrasts.contrasts(fitted(name), factors, by=by, adjust=ADJUSTMENTS[adjust], ddf=ddf)
        found = _matched(gold, ["contrast", *by], table, ["term", *by])
        close(values(gold, "estimate"), found["estimate"], absolute=1e-7)
        close(values(gold, "SE"), found["std_error"], rel=1e-6)
        close(values(gold, "p.value"), found["p_value"], absolute=1e-6)
        loose = 1e-4 if adjust == "tukey" else 1e-6
        close(values(gold, "lower.CL" if ddf != "z" else "asymp.LCL"), found["low"], absolute=loose)


@pytest.mark.parametrize("name", [n for n in WITH_KR if GOLD[n]["KR"].get("emm_pairs")])
def test_kenward_roger_contrasts(name):
    factors, by = _shape(name)
    gold = GOLD[name]["KR"]["emm_pairs"]
    table = contrasts.contrasts(fitted(name), factors, by=by, adjust="none", ddf="kenward-roger")
    found = _matched(gold, ["contrast", *by], table, ["term", *by])
    close(values(gold, "SE"), found["std_error"], rel=2e-6)
    close(values(gold, "df"), found["df"], rel=2e-6)


@pytest.mark.parametrize("name", [n for n in MODELS if GOLD[n].get("ranef")])
def test_predicted_random_effects(name):
    for group, rows in GOLD[name]["ranef"].items():
        found = fitted(name).blups(group).set_index(["level", "name"])["estimate"]
        for row in rows:
            for column, value in row.items():
                if column != "term":
                    assert value == pytest.approx(found[row["term"], column], abs=1e-4)


def test_conditional_spread_of_random_effects():
    """condsd of as.data.frame(ranef(fit)) in lme4 1.1-31, at lmer's own, unpolished theta."""
    sleep = fitted("sleepstudy_slope").blups("Subject")["std_error"][:2]
    close([12.070857, 2.304839], sleep, rel=5e-6)
    penicillin = fitted("Penicillin")
    close(0.27135930, penicillin.blups("plate")["std_error"][0], rel=5e-6)
    close(0.20217069, penicillin.blups("sample")["std_error"][0], rel=5e-6)


def test_satterthwaite_leaves_a_zero_variance_out_and_kenward_roger_keeps_it():
    wine = fitted("wine_lmm")
    assert wine.singular_terms == ["(1 | bottle)"]
    close([19.92, 60, 60, 60], wine.coefficients()["df"].round(2))
    close([4, 4, 4], wine.coefficients("kenward-roger")["df"][1:].round(9))


def test_no_number_of_rows_turns_the_degrees_of_freedom_off():
    """emmeans gives z beyond 3,000 rows; these are 5,359."""
    assert contrasts.means(fitted("sim5950_unbal_m1"), "source")["df"].between(10, 100).all()
