W='/root/wt/profiles/'
def sub(p, pairs):
    s=open(p).read()
    for a,b in pairs:
        assert a in s, (p,a)
        s=s.replace(a,b,1)
    open(p,'w').write(s)
sub(W+'README.md',[
('''$ eaglelint scan --draft my-draft/ --target my-target/ --training train/ --serving sglang@path/to/sglang
''','''$ eaglelint scan --draft my-draft/ --target my-target/ --training train/ --serving sglang==0.5.9
'''),
('''- `--serving`: `sglang@PATH` or `vllm@PATH`, a source tree or an unpacked wheel; `sglang` or `vllm` alone is the installed
  package, found without importing it. Repeat it to compare engines and releases: the same ids can change their meaning
  with an upgrade.
''','''- `--serving`: `sglang==0.5.9`, a release whose profile is bundled (`eaglelint engines list`), so that no source is needed;
  `sglang@PATH` or `vllm@PATH`, a source tree or an unpacked wheel; `sglang` or `vllm` alone, the installed package, found
  without importing it; or a profile of your own, `sglang@FILE.json`. Repeat it to compare engines and releases: the same
  ids can change their meaning with an upgrade. Rules on the engine's own code need the source.
'''),
('''| `eaglelint baseline create`''','''| `eaglelint engines diff sglang==0.5.9 sglang==0.5.23` | for which classes the same ids mean other hidden states after an upgrade |
| `eaglelint engines learn sglang-0.5.10.whl -o FILE.json`, `engines list` | a profile of another release, learned from its source; what can be named |
| `eaglelint baseline create`'''),
])
sub(W+'CHANGELOG.md',[('''- `eaglelint engines learn SOURCE''','''- `--serving sglang==0.5.9`: bundled profiles of releases give the verdict that their source gives, without it. Rules on the
  engine's own code (GPH001, SHP006) still need the source.
- `eaglelint engines learn SOURCE''')])
sub(W+'.ci/check_wheel.py',[('"schemas/report.schema.json"','"schemas/report.schema.json", "engines/profiles/sglang-0.5.9.json"')])
